//! Bit fields, most significant first, as the tag data standard counts them.

/// The largest EPC a Gen2 tag can hold: its length field counts to 31 words of 16 bits.
pub(super) const MAX_BYTES: usize = 62;

/// Bits in the order they are pushed, in a buffer on the stack.
#[derive(Clone)]
pub(super) struct Bits {
    bytes: [u8; MAX_BYTES],
    len: usize,
}

impl Bits {
    pub(super) fn new() -> Self {
        Self { bytes: [0; MAX_BYTES], len: 0 }
    }

    /// Appends the low `width` bits of `value`; `None` if they do not fit into a tag.
    #[must_use]
    pub(super) fn push(&mut self, value: u128, width: u32) -> Option<()> {
        if self.len + width as usize > MAX_BYTES * 8 {
            return None;
        }
        for shift in (0..width).rev() {
            let bit = if shift < 128 { (value >> shift) as u8 & 1 } else { 0 };
            self.bytes[self.len / 8] |= bit << (7 - self.len % 8);
            self.len += 1;
        }
        Some(())
    }

    /// How many were pushed.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The bits, filled up with zeros to whole words of 16, as a tag stores them.
    pub(super) fn words(&self) -> &[u8] {
        &self.bytes[..self.len.div_ceil(16) * 2]
    }
}

/// Takes fields off the front.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `width` (at most 128) bits as a number; `None` past the end.
    pub(super) fn take(&mut self, width: u32) -> Option<u128> {
        if self.at + width as usize > self.bytes.len() * 8 {
            return None;
        }
        let mut value = 0;
        for _ in 0..width {
            let bit = (self.bytes[self.at / 8] >> (7 - self.at % 8)) & 1;
            value = value << 1 | u128::from(bit);
            self.at += 1;
        }
        Some(value)
    }

    /// How many bits were taken.
    pub(super) fn taken(&self) -> usize {
        self.at
    }

    /// Whether only zeros are left.
    pub(super) fn rest_is_zero(&mut self) -> bool {
        (self.at..self.bytes.len() * 8).all(|_| self.take(1) == Some(0))
    }
}
