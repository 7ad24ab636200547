//! TLS: whom a broker is to be certified by.

use std::fmt::Display;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A client that trusts these authorities (PEM), or those of the system.
///
/// # Errors
/// There is none among them that could be used.
pub(crate) fn client(authorities: Option<&[u8]>) -> Result<Arc<ClientConfig>, String> {
    let wrong = |why: &dyn Display| format!("no certificate to know the broker by: {why}");
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(wrong(&"there is none in the file, or in the system; give one with --ca"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// What is wrong with a broker's certificate, in words that help.
pub(crate) fn certificate(why: &str) -> String {
    let what = if why.contains("UnknownIssuer") || why.contains("BadSignature") {
        "its certificate is from an authority that is not trusted here; --ca names the file of one that is to be"
    } else if why.contains("NotValidForName") || why.contains("not valid for name") {
        "its certificate is for another host; use the name that is in it"
    } else if why.contains("xpired") {
        "its certificate has expired"
    } else {
        "its certificate cannot be accepted"
    };
    format!("{what} ({why})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_are_none() {
        for pem in [
            &b""[..],
            b"nonsense",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(client(Some(pem)).unwrap_err().contains("certificate"));
        }
    }
}
