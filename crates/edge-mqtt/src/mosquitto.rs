//! Starts the installed Eclipse Mosquitto on a free port, for demonstrations and tests.

use std::fs;
use std::io::{self, Error, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a broker may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running broker, stopped when this is dropped. It listens on 127.0.0.1 only, and accepts every client.
#[derive(Debug)]
pub struct Mosquitto {
    program: PathBuf,
    port: u16,
    folder: PathBuf,
    child: Child,
}

/// The installed program, if there is one.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian puts it where not everybody looks.
    let also = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(also);
    folders.find_map(|folder| Some(folder.join("mosquitto")).filter(|program| program.is_file()))
}

impl Mosquitto {
    /// Starts a broker, with further lines of configuration.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it is not installed; otherwise what went wrong at the start.
    pub fn start(more: &str) -> io::Result<Self> {
        let missing = "mosquitto is not installed: `apt-get install mosquitto`, `brew install mosquitto`, or see https://mosquitto.org";
        let program = find().ok_or_else(|| Error::new(ErrorKind::NotFound, missing))?;
        let folder =
            std::env::temp_dir().join(format!("lately-mosquitto-{:016x}", fastrand::u64(..)));
        fs::create_dir(&folder)?;
        // Somebody else may take the port between the question and the start.
        let mut last = Error::from(ErrorKind::AddrInUse);
        for _ in 0..3 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
            configure(&folder, port, more)?;
            match launch(&program, &folder, port) {
                Ok(child) => return Ok(Self { program, port, folder, child }),
                Err(error) => last = error,
            }
        }
        let _ = fs::remove_dir_all(&folder);
        Err(last)
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it at once, as a power cut would.
    ///
    /// # Errors
    /// What the system says.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Starts it again after [`Mosquitto::kill`], at the same address.
    ///
    /// # Errors
    /// What the system says.
    pub fn restart(&mut self) -> io::Result<()> {
        self.child = launch(&self.program, &self.folder, self.port)?;
        Ok(())
    }

    /// The same with other further lines of configuration.
    ///
    /// # Errors
    /// What the system says.
    pub fn restart_with(&mut self, more: &str) -> io::Result<()> {
        configure(&self.folder, self.port, more)?;
        self.restart()
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // What is gone already is as it should be.
        let _ = self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn configure(folder: &Path, port: u16, more: &str) -> io::Result<()> {
    let settings = format!(
        "listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n\
         max_inflight_messages 512\nmax_queued_messages 1000000\nset_tcp_nodelay true\n\
         log_type error\n{more}\n"
    );
    fs::write(folder.join("mosquitto.conf"), settings)
}

fn launch(program: &Path, folder: &Path, port: u16) -> io::Result<Child> {
    let mut child = Command::new(program)
        .arg("-c")
        .arg(folder.join("mosquitto.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Err(Error::other(format!("mosquitto ended at once: {status}")));
        }
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(child);
        }
        sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(Error::new(ErrorKind::TimedOut, "mosquitto does not listen"))
}
