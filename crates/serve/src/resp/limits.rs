//! How large requests may be.

/// The limits on what one client may send. They bound what is buffered for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Arguments of a command, its name included.
    pub(crate) arguments: usize,
    /// Bytes of an argument.
    pub(crate) item: usize,
    /// Bytes of a command.
    pub(crate) request: usize,
    /// Whether they are those for clients that have not given the password yet.
    pub(crate) is_strict: bool,
}

impl Limits {
    /// For clients that may do anything.
    pub(crate) const FULL: Self =
        Self { arguments: 1 << 20, item: 1 << 20, request: 64 << 20, is_strict: false };

    /// For clients that have not given the password yet.
    pub(crate) const STRICT: Self =
        Self { arguments: 10, item: 16 << 10, request: 10 * (16 << 10), is_strict: true };

    /// The commands whose arguments behind the first may be as large as a request.
    pub(crate) const LARGE: [&[u8]; 3] = [b"lately.restore", b"bf.loadchunk", b"cf.loadchunk"];

    /// Bytes of a command in one line.
    pub(crate) const LINE: usize = 64 << 10;
}
