//! Signals: end in good order, and save on demand.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What signals have asked for.
#[derive(Clone, Default)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    save: Arc<AtomicBool>,
}

impl Signals {
    /// Listens: SIGINT and SIGTERM end the run as the end of its input would (a second SIGINT ends
    /// it at once), SIGUSR1 saves the state.
    #[cfg(unix)]
    pub fn listen() -> io::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
        use signal_hook::flag;
        let signals = Self::default();
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&signals.stop))?;
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&signals.stop))?;
        }
        flag::register(SIGUSR1, Arc::clone(&signals.save))?;
        Ok(signals)
    }

    /// There are no such signals here.
    #[cfg(not(unix))]
    pub fn listen() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Is the run to end?
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Is the state to be saved now? Asked once a signal.
    pub fn save(&self) -> bool {
        self.save.swap(false, Ordering::Relaxed)
    }
}
