//! TLS: certificates in files, and a socket that speaks it.

use crate::config::{ConfigError, TlsFiles};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::net::TcpStream;

/// The certificates in use. They can be read again while clients are served; those keep what they have.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Which file is wrong, and how.
    pub(crate) fn load(files: TlsFiles) -> Result<Self, ConfigError> {
        let config = RwLock::new(read(&files)?);
        Ok(Self { files, config })
    }

    /// Reads the files again. If they are wrong, those in use stay.
    ///
    /// # Errors
    /// Which file is wrong, and how.
    pub(crate) fn reload(&self) -> Result<(), ConfigError> {
        let new = read(&self.files)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Checks the files as a server that starts does.
///
/// # Errors
/// Which file is wrong, and how.
pub(crate) fn check(files: &TlsFiles) -> Result<(), ConfigError> {
    read(files).map(drop)
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, ConfigError> {
    let fault = |path: &Path, what: String| ConfigError(format!("{}: {what}", path.display()));
    let chain = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            fault(&files.key, "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)".into())
        }
        error => fault(&files.key, error.to_string()),
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConfigError(format!("TLS: {error}")))?;
    let builder = match &files.ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| fault(path, error.to_string()))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            let verifier = verifier.map_err(|error| fault(path, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(|error| {
        let (cert, key) = (files.cert.display(), files.key.display());
        match error {
            rustls::Error::InconsistentKeys(_) => ConfigError(format!(
                "{key}: is not the private key of the certificate in {cert}; give the two that were made together"
            )),
            error => ConfigError(format!("{cert} with {key}: {error}")),
        }
    })?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let fault = |what: String| ConfigError(format!("{}: {what}", path.display()));
    let found = CertificateDer::pem_file_iter(path).map_err(|error| fault(error.to_string()))?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| fault(error.to_string()))?;
    if found.is_empty() {
        return Err(fault("holds no certificate in PEM (-----BEGIN CERTIFICATE-----)".into()));
    }
    Ok(found)
}

/// The first byte of whoever speaks TLS.
pub(super) const HANDSHAKE: u8 = 22;

/// A connection behind a handshake, for callers that do not wait.
#[derive(Debug)]
pub(super) struct TlsSocket {
    pub(super) stream: TcpStream,
    tls: ServerConnection,
    /// Bytes that have been decrypted and not been read.
    has_plaintext: bool,
}

impl TlsSocket {
    pub(super) fn new(stream: TcpStream, tls: ServerConnection) -> Self {
        // What came with the end of the handshake may be there already.
        Self { stream, tls, has_plaintext: true }
    }

    /// Is there something to read without waiting for the network?
    pub(super) fn has_plaintext(&self) -> bool {
        self.has_plaintext
    }

    /// Is there something that the network has not taken?
    pub(super) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// As much as there is; 0 at the end.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        loop {
            match self.tls.reader().read(&mut into[done..]) {
                Ok(0) => return Ok(done),
                Ok(bytes) => {
                    done += bytes;
                    if done == into.len() {
                        self.has_plaintext = true;
                        return Ok(done);
                    }
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.has_plaintext = false,
                // The other side went without saying so. What it sent before counts.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(done),
                Err(error) => return Err(error),
            }
            match self.tls.read_tls(&mut Direct(&self.stream)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The alert that says why.
                let _ = self.flush();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Takes what it can; `WouldBlock` if that is nothing.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.tls.writer().write(bytes)?;
        self.flush()?;
        if taken == 0 && !bytes.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(taken)
    }

    /// Sends what the network takes now.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Direct(&self.stream)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Says that nothing more comes.
    pub(super) fn close(&mut self) {
        self.tls.send_close_notify();
        // If the other side has gone, it need not know.
        let _ = self.flush();
    }
}

/// A socket that is read and written without waiting.
struct Direct<'a>(&'a TcpStream);

impl Read for Direct<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
}

impl Write for Direct<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
