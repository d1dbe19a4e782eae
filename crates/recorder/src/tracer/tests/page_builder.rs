//! Writes pages as the kernel's ring buffer lays them out.

pub struct PageBuilder {
    bytes: Vec<u8>,
}

impl PageBuilder {
    pub fn at(time_ns: u64) -> Self {
        let mut bytes = time_ns.to_ne_bytes().to_vec();
        bytes.extend([0; 8]);
        Self { bytes }
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_ne_bytes());
    }

    fn head(&mut self, kind: u32, delta: u32) {
        self.word(kind | delta << 5);
    }

    /// A record of up to 112 bytes, its length in the head.
    pub fn short(mut self, delta: u32, data: &[u8]) -> Self {
        assert!(data.len().is_multiple_of(4) && (4..=112).contains(&data.len()));
        self.head(data.len() as u32 / 4, delta);
        self.bytes.extend(data);
        self
    }

    /// A record with its length in a word of its own.
    pub fn long(mut self, delta: u32, data: &[u8]) -> Self {
        self.head(0, delta);
        self.word(data.len() as u32 + 4);
        self.bytes.extend(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// A delta that is too long for a head.
    pub fn extend(mut self, delta: u64) -> Self {
        self.head(30, (delta & 0x7ff_ffff) as u32);
        self.word((delta >> 27) as u32);
        self
    }

    /// A whole time, but for its highest bits.
    pub fn stamp(mut self, time_ns: u64) -> Self {
        self.head(31, (time_ns & 0x7ff_ffff) as u32);
        self.word((time_ns >> 27 & 0xffff_ffff) as u32);
        self
    }

    /// A record that its writer took back.
    pub fn discarded(mut self, delta: u32, length: usize) -> Self {
        self.head(29, delta);
        self.word(length as u32 + 4);
        self.bytes.resize(self.bytes.len() + length, 0xaa);
        self
    }

    /// The whole page, of 4,096 bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let committed = self.bytes.len() as u64 - 16;
        self.bytes[8..16].copy_from_slice(&committed.to_ne_bytes());
        self.bytes.resize(4096, 0);
        self.bytes
    }
}
