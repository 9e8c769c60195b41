//! Numbers as bytes, little-endian, and back; nothing that was cut short or changed is read.

/// Bytes on their way out.
#[derive(Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn number(&mut self, x: u64) {
        self.0.extend(x.to_le_bytes());
    }

    pub fn long(&mut self, x: i128) {
        self.0.extend(x.to_le_bytes());
    }

    /// All of it, with a checksum at the end.
    pub fn sealed(mut self) -> Vec<u8> {
        let sum = checksum(&self.0);
        self.number(sum);
        self.0
    }
}

/// Bytes on their way in.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Of bytes with a checksum at their end; none where it is another one.
    pub fn unsealed(bytes: &'a [u8]) -> Option<Self> {
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        (sum == checksum(body).to_le_bytes()).then_some(Reader(body))
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    pub fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn long(&mut self) -> Option<i128> {
        Some(i128::from_le_bytes(self.take(16)?.try_into().ok()?))
    }

    /// Whether there are so many bytes left.
    pub fn has(&self, bytes: usize) -> bool {
        self.0.len() >= bytes
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Of bytes, eight at a time.
fn checksum(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| super::chosen::mixed(sum ^ word(chunk)))
}
