//! `lately serve` with certificates, by OpenSSL and redis-cli.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use support::serving::{Serving, is_there};
use support::{Folder, LATELY};

/// An authority, and certificates of its making.
struct Authority {
    folder: Folder,
}

impl Authority {
    fn new() -> Self {
        let it = Self { folder: Folder::new() };
        it.openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=authority",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
        ]);
        it
    }

    fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl")
            .args(arguments)
            .current_dir(self.folder.path(""))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes `NAME.pem` and `NAME.key`, signed by this authority.
    fn sign(&self, name: &str, number: u32) {
        let (request, key, cert) =
            (format!("{name}.csr"), format!("{name}.key"), format!("{name}.pem"));
        self.openssl(&[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            &format!("/CN={name}{number}"),
            "-keyout",
            &key,
            "-out",
            &request,
        ]);
        self.folder.file("extension", "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "extension",
            "-out",
            &cert,
        ]);
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }
}

fn can_run() -> bool {
    is_there("openssl", "version") && is_there("redis-cli", "--version")
}

/// What redis-cli says; empty answers are left out.
fn redis_cli(port: &str, arguments: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-p", port])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    said.trim().to_owned()
}

/// The subject of the certificate that a port shows, and what it answers to this over TLS.
fn s_client(port: &str, more: &[&str], send: &[u8]) -> (String, String) {
    let mut client = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-ign_eof"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have been refused already.
    let _ = client.stdin.take().unwrap().write_all(send);
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let subject = said.lines().find_map(|line| line.strip_prefix("subject=")).unwrap_or_default();
    (subject.to_owned(), said.clone().into_owned())
}

#[test]
fn both_languages_and_new_certificates() {
    if !can_run() {
        return;
    }
    let authority = Authority::new();
    authority.sign("server", 1);
    let (cert, key, ca) =
        (authority.path("server.pem"), authority.path("server.key"), authority.path("ca.pem"));
    let server = Serving::start(&["--tls-cert", &cert, "--tls-key", &key]);
    let cli = |arguments: &[&str]| {
        redis_cli(&server.port, &[&["--tls", "--cacert", &ca], arguments].concat())
    };
    assert_eq!(cli(&["set", "k", "1", "nx", "ex", "600"]), "OK");
    assert_eq!(cli(&["set", "k", "1", "nx", "ex", "600"]), "");
    // Replies of several records, and pipelines of many.
    let many: Vec<String> = (0..20_000).map(|n| format!("SET {n} 1 NX EX 600\r\n")).collect();
    let pipeline = many.concat() + "QUIT\r\n";
    let (_, said) = s_client(
        &server.port,
        &["-CAfile", &ca, "-quiet", "-verify_return_error"],
        pipeline.as_bytes(),
    );
    assert_eq!(said.matches("+OK").count(), 20_001, "{}", &said[..said.len().min(500)]);
    for version in ["-tls1_2", "-tls1_3"] {
        let get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let (_, said) =
            s_client(&server.http, &[version, "-CAfile", &ca, "-verify_return_error"], get);
        assert!(
            said.contains("HTTP/1.1 200 OK") && said.contains(r#"{"status":"ok"}"#),
            "{version}: {said}"
        );
    }
    let (_, old) = s_client(&server.http, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], b"");
    assert!(!old.contains("HTTP/1.1") && old.to_lowercase().contains("alert"), "{old}");
    // Connections stay while certificates change.
    let subject = || s_client(&server.port, &[], b"QUIT\r\n").0;
    assert!(subject().contains("server1"), "{}", subject());
    authority.sign("server", 2);
    server.signal("-HUP");
    server.says("the certificates were read again");
    assert!(subject().contains("server2"), "{}", subject());
    fs::write(&cert, "nothing").unwrap();
    server.signal("-HUP");
    server.says("server.pem: holds no certificate in PEM");
    assert!(subject().contains("server2"), "{}", subject());
    server.end();
}

#[test]
fn certificates_of_clients() {
    if !can_run() {
        return;
    }
    let (authority, other) = (Authority::new(), Authority::new());
    authority.sign("server", 1);
    authority.sign("client", 1);
    other.sign("client", 1);
    let (cert, key, ca) =
        (authority.path("server.pem"), authority.path("server.key"), authority.path("ca.pem"));
    let server = Serving::start(&["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &ca]);
    let cli = |from: Option<&Authority>| {
        let mut arguments = vec!["--tls".to_owned(), "--cacert".into(), ca.clone()];
        if let Some(from) = from {
            arguments.extend([
                "--cert".into(),
                from.path("client.pem"),
                "--key".into(),
                from.path("client.key"),
            ]);
        }
        arguments.push("ping".into());
        redis_cli(&server.port, &arguments.iter().map(|argument| &argument[..]).collect::<Vec<_>>())
    };
    assert_eq!(cli(Some(&authority)), "PONG");
    assert!(!cli(None).contains("PONG"));
    server.says("127.0.0.1: no TLS with this client: peer sent no certificates");
    assert!(!cli(Some(&other)).contains("PONG"));
    server.says("invalid peer certificate: ");
    assert_eq!(cli(Some(&authority)), "PONG");
    server.end();
}

/// Each side hears that the other speaks something else.
#[test]
fn plain_to_tls_and_tls_to_plain() {
    if !can_run() {
        return;
    }
    let authority = Authority::new();
    authority.sign("server", 1);
    let (cert, key) = (authority.path("server.pem"), authority.path("server.key"));
    let closed = Serving::start(&["--tls-cert", &cert, "--tls-key", &key]);
    assert!(redis_cli(&closed.port, &["ping"]).contains("this port speaks TLS"));
    let mut client = closed.connect(&closed.http);
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("this port speaks TLS"), "{said}");
    closed.says("127.0.0.1: spoke no TLS to a port that does");
    // A client that says nothing is no reason to wait for.
    let _silent = closed.connect(&closed.port);
    closed.end();
    let plain = Serving::start(&[]);
    let said = redis_cli(&plain.port, &["--tls", "--insecure", "ping"]);
    assert!(said.contains("SSL_connect failed"), "{said}");
    plain.says("a client spoke TLS to a port that does not");
    let said = s_client(&plain.http, &[], b"").1;
    assert!(said.contains("wrong version number"), "{said}");
    plain.end();
}

#[test]
fn wrong_files_are_said() {
    if !can_run() {
        return;
    }
    let authority = Authority::new();
    authority.sign("server", 1);
    authority.sign("other", 1);
    authority.folder.file("empty", "");
    authority.folder.file("torn", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
    let check = |cert: &str, key: Option<&str>, ca: Option<&str>| {
        let mut command = Command::new(LATELY);
        command.args(["serve", "--check", "--tls-cert", &authority.path(cert)]);
        for (flag, file) in [("--tls-key", key), ("--tls-ca", ca)] {
            if let Some(file) = file {
                command.args([flag, &authority.path(file)]);
            }
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(check("server.pem", Some("server.key"), Some("ca.pem")).0, Some(0));
    for (cert, key, ca, expected) in [
        ("server.pem", None, None, "give tls_key (--tls-key) too"),
        ("none.pem", Some("server.key"), None, "none.pem: "),
        ("empty", Some("server.key"), None, "empty: holds no certificate in PEM"),
        ("torn", Some("server.key"), None, "torn: "),
        ("server.pem", Some("empty"), None, "empty: holds no private key in PEM"),
        ("server.pem", Some("server.pem"), None, "server.pem: holds no private key"),
        (
            "server.pem",
            Some("other.key"),
            None,
            "other.key: is not the private key of the certificate in",
        ),
        ("server.pem", Some("server.key"), Some("empty"), "empty: holds no certificate"),
    ] {
        let (code, said) = check(cert, key, ca);
        assert!(code == Some(2) && said.contains(expected), "{cert} {key:?}: {code:?} {said}");
    }
}
