//! Times and lengths of records on a page.

use crate::tracer::raw_burst::{Records, Spool, Stream, used_bytes};

/// Writes a page as the kernel's ring buffer lays it out.
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

fn all(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
    Records::of(page)
        .map(|(time, data)| (time, data.to_vec()))
        .collect()
}

#[test]
fn long_waits_and_whole_times_are_understood() {
    let far = 5 << 30;
    let stamp = (1 << 59) - 1;
    let base = (1 << 60) + 1;
    let page = PageBuilder::at(base)
        .extend(far)
        .short(1, &[1; 4])
        .stamp(stamp)
        .short(2, &[2; 4])
        .finish();
    let times: Vec<u64> = all(&page).iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [base + far + 1, (1 << 60) + stamp + 2]);
}

#[test]
fn long_records_and_those_taken_back_keep_their_length() {
    let page = PageBuilder::at(0)
        .long(1, &[3; 500])
        .discarded(2, 40)
        .short(4, &[4; 112])
        .finish();
    assert_eq!(all(&page), [(1, vec![3; 500]), (7, vec![4; 112])]);
}

#[test]
fn a_page_that_follows_a_loss_is_read_as_any_other() {
    let mut page = PageBuilder::at(9).short(0, &[1; 4]).finish();
    page[11] |= 0xc0;
    assert_eq!(used_bytes(&page), Some(24));
    assert_eq!(all(&page).len(), 1);
}

#[test]
fn what_is_cut_or_damaged_ends_early() {
    let page = PageBuilder::at(1)
        .short(1, &[1; 8])
        .long(1, &[2; 200])
        .stamp(5)
        .short(1, &[3; 4])
        .finish();
    let used = used_bytes(&page).expect("whole");
    for length in 0..used {
        assert!(all(&page[..length]).len() <= 3);
        let mut damaged = page.clone();
        damaged[length] ^= 0xff;
        all(&damaged)
            .iter()
            .for_each(|(_, data)| assert!(data.len() < 4096));
    }
}

#[test]
fn a_stream_gives_pages_back_in_order_without_their_empty_part() {
    let mut spool = Spool::new(0, &std::env::temp_dir()).expect("room for a file");
    let mut stream = Stream::new(3);
    for time in [10, 20, 30] {
        let page = PageBuilder::at(time).short(0, &[time as u8; 4]).finish();
        stream.push(&page, &mut spool).expect("memory");
    }
    stream
        .push(&PageBuilder::at(40).finish(), &mut spool)
        .expect("memory");
    let times: Vec<u64> = stream.records().map(|(time, _)| time).collect();
    assert_eq!(times, [10, 20, 30]);
    assert_eq!(stream.bytes(), 3 * 24);
}

#[test]
fn what_does_not_fit_in_memory_comes_back_from_the_file() {
    let mut spool = Spool::new(1 << 20, &std::env::temp_dir()).expect("room for a file");
    let mut streams = [Stream::new(0), Stream::new(1)];
    let filled = |time| {
        let start = PageBuilder::at(time);
        (0..30)
            .fold(start, |page, _| page.short(1, &[7; 112]))
            .finish()
    };
    for time in (0..1_500_000).step_by(1_000) {
        for stream in &mut streams {
            stream.push(&filled(time), &mut spool).expect("room");
        }
    }
    spool.finish(&mut streams).expect("it can be mapped");
    for stream in &streams {
        let times: Vec<u64> = stream.records().map(|(time, _)| time).collect();
        assert_eq!(times.len(), 45_000);
        assert!(times.is_sorted());
        assert!(stream.bytes() > 4 << 20);
    }
}
