//! One page of the kernel's ring buffer, as `trace_pipe_raw` gives it: a header, then records with time deltas.

/// Length of the page's header: a time and how much is committed.
pub const HEADER_BYTES: usize = 16;

const LENGTH_MASK: u64 = (1 << 27) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of a whole time that an absolute time stamp leaves to the page's own.
const STAMP_BITS: u32 = 59;

/// The records of one page, each with its time; ends at the first that is not whole.
pub struct Records<'a> {
    rest: &'a [u8],
    time_ns: u64,
}

/// Number of bytes in use in a page, with its header; none for a page that is not one.
pub fn used_bytes(page: &[u8]) -> Option<usize> {
    let committed = usize::try_from(word(page, 8)? & LENGTH_MASK).ok()?;
    let used = HEADER_BYTES + committed;
    (used <= page.len()).then_some(used)
}

impl<'a> Records<'a> {
    /// Of a page, its header first.
    pub fn of(page: &'a [u8]) -> Self {
        let used = used_bytes(page).unwrap_or(0);
        Self {
            rest: page.get(HEADER_BYTES..used).unwrap_or_default(),
            time_ns: word(page, 0).unwrap_or(0),
        }
    }

    /// Takes `length` bytes and returns those after the record's head.
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length.next_multiple_of(4))?;
        self.rest = rest;
        taken.get(4..)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let head = half_word(self.rest, 0)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.time_ns += delta;
                    let length = half_word(self.rest, 4)? as usize;
                    self.take(length.checked_add(4)?)?;
                }
                TIME_EXTEND => {
                    self.time_ns += delta | u64::from(half_word(self.rest, 4)?) << 27;
                    self.take(8)?;
                }
                TIME_STAMP => {
                    let stamp = delta | u64::from(half_word(self.rest, 4)?) << 27;
                    self.time_ns = self.time_ns >> STAMP_BITS << STAMP_BITS | stamp;
                    self.take(8)?;
                }
                0 => {
                    self.time_ns += delta;
                    let length = half_word(self.rest, 4)? as usize;
                    let record = self.take(length.checked_add(4)?)?;
                    return Some((self.time_ns, record.get(4..)?));
                }
                words => {
                    self.time_ns += delta;
                    let record = self.take(4 + 4 * words as usize)?;
                    return Some((self.time_ns, record));
                }
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half_word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
