//! Status in a session's reply: its last bytes are copied at the entry of the call, and reported before its exit.
//!
//! PostgreSQL, MySQL and MariaDB reply with `send`, which is the call `sendto`. Data sent by another call has no status.

use std::collections::HashMap;

use tierwise_recording::TransactionStatus;

use crate::trace_event::{TraceEvent, TraceEventKind};
use crate::tracer::kernel_record::KernelRecord;

/// Data that a call sends. Its bytes are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SentReply {
    /// When it began, monotonic clock.
    time_ns: u64,
    length_bytes: u64,
    /// Status in its last bytes.
    status: TransactionStatus,
}

/// Replies that wait for the exits of their calls: each thread's last.
#[derive(Default)]
pub struct WaitingReplies {
    waiting: HashMap<i32, SentReply>,
}

impl WaitingReplies {
    /// A record of the begin of a call that sends: the number of bytes, and the last ones.
    pub fn begin(&mut self, record: &KernelRecord) {
        let [length_bytes, tail, ..] = record.words;
        let tail = tail.to_ne_bytes();
        let seen = if length_bytes < TAIL_BYTES as u64 {
            &[]
        } else {
            &tail[..]
        };
        let reply = SentReply {
            time_ns: record.time_ns,
            length_bytes,
            status: reply_status(seen, length_bytes),
        };
        self.waiting.insert(record.tid, reply);
    }

    /// The event to insert before `event`: what its call sends.
    pub fn before(&mut self, event: &TraceEvent) -> Option<TraceEvent> {
        let TraceEventKind::Exit { number, result } = event.kind else {
            return None;
        };
        if i64::from(number) != libc::SYS_sendto {
            return None;
        }
        let reply = self.waiting.remove(&event.tid)?;
        let whole = u64::try_from(result) == Ok(reply.length_bytes);
        whole.then_some(TraceEvent {
            kind: TraceEventKind::Replied {
                begun_ns: reply.time_ns,
                status: reply.status,
            },
            ..*event
        })
    }
}

// Reads the status of a session's transaction from the end of a database's reply, by protocol.

/// Bytes at the end of a reply that are looked at; a shorter one has no status.
const TAIL_BYTES: usize = 8;

/// The status in the last bytes of `length_bytes` that were sent; `Unknown` where no protocol explains them.
pub fn reply_status(tail: &[u8], length_bytes: u64) -> TransactionStatus {
    postgres_reply_status(tail)
        .or_else(|| mysql_reply_status(tail, length_bytes))
        .unwrap_or(TransactionStatus::Unknown)
}

/// Type and length of ReadyForQuery.
const READY_FOR_QUERY: [u8; 5] = [b'Z', 0, 0, 0, 5];

/// The status by PostgreSQL's protocol, version 3: a reply ends with ReadyForQuery, which tells it in one letter.
///
/// None if it is no ReadyForQuery, or nothing else: that answers a Sync without statements, which ends no transaction.
fn postgres_reply_status(tail: &[u8]) -> Option<TransactionStatus> {
    let (letter, before) = tail.split_last()?;
    if !before.ends_with(&READY_FOR_QUERY) || before.len() == READY_FOR_QUERY.len() {
        return None;
    }
    match letter {
        b'I' => Some(TransactionStatus::Idle),
        b'T' => Some(TransactionStatus::InTransaction),
        b'E' => Some(TransactionStatus::Failed),
        _ => None,
    }
}

const IN_TRANSACTION: u16 = 0x0001;
const IN_READ_ONLY_TRANSACTION: u16 = 0x2000;
/// No server sets it.
const UNUSED: u16 = 0x0004;
/// The changes of the session's state follow: these are not its last bytes.
const STATE_CHANGED: u16 = 0x4000;

const OK: u8 = 0x00;
const END_OF_ROWS: u8 = 0xfe;

/// Lengths of a number, from one byte for those up to 250 to nine; longer ones begin with this byte.
const NUMBERS: [(u64, u8); 4] = [(1, 0), (3, 0xfc), (4, 0xfd), (9, 0xfe)];
/// Header, type, flags and warnings.
const OK_BYTES: u64 = 9;
const EOF_BYTES: u64 = 9;

/// The status by the protocol of MySQL and MariaDB, version 4.1 and later: a reply ends with the server's status flags.
///
/// A statement without rows is answered by an OK packet, alone: its length, a sequence number, `00`, the rows that
/// it changed and the last number that it gave (one to nine bytes each), flags, warnings. Rows, in text or binary,
/// are followed by an EOF packet: `05 00 00`, a sequence number, `fe`, warnings, flags; or, where the client wants no
/// EOF packets, by an OK packet that begins with `fe`. An OK packet may end with a message (of an UPDATE) or with
/// changes of the session's state; its flags stand before them and are not seen.
///
/// None if it is no packet with flags at its end.
fn mysql_reply_status(tail: &[u8], length_bytes: u64) -> Option<TransactionStatus> {
    let tail: [u8; 8] = tail.try_into().ok()?;
    let [_, _, _, _, a, b, c, d] = tail;
    let (first, second) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    if is_eof_packet(tail, length_bytes) {
        status_of_flags(second, first)
    } else if is_ok_packet(tail, length_bytes) || rows_end_with_ok(tail, length_bytes) {
        status_of_flags(first, second)
    } else {
        tracked_state_status(tail, length_bytes)
    }
}

/// Letters after the first of a transaction's state as MySQL tracks it for clients, each or an underscore.
/// <https://dev.mysql.com/doc/refman/8.0/en/session-state-tracking.html>
const TRACKED: [u8; 7] = *b"rRwWsSL";
/// An OK packet with two short numbers and no message that tells this change of the session's state alone.
const TRACKED_BYTES: u64 = 24;

/// The status by the tracked state at the end of an OK packet.
fn tracked_state_status(
    [kind, parts @ ..]: [u8; 8],
    length_bytes: u64,
) -> Option<TransactionStatus> {
    let mut letters = parts.iter().zip(TRACKED);
    let fits = letters.all(|(&letter, set)| letter == b'_' || letter == set);
    match kind {
        _ if !fits || length_bytes != TRACKED_BYTES => None,
        b'T' | b'I' => Some(TransactionStatus::InTransaction),
        b'_' => Some(TransactionStatus::Idle),
        _ => None,
    }
}

/// Whether it is an EOF packet; all but its first byte is seen.
fn is_eof_packet([high, highest, _, kind, ..]: [u8; 8], length_bytes: u64) -> bool {
    length_bytes >= EOF_BYTES && high == 0 && highest == 0 && kind == END_OF_ROWS
}

/// Whether rows end with an OK packet, which says of no rows that they changed.
fn rows_end_with_ok([_, kind, changed, given, ..]: [u8; 8], length_bytes: u64) -> bool {
    length_bytes > OK_BYTES && kind == END_OF_ROWS && changed == 0 && given == 0
}

/// Whether the whole reply is an OK packet: its two numbers are as long as its length leaves room for, and begin as
/// numbers of such a length do, as far as they are seen.
fn is_ok_packet(tail: [u8; 8], length_bytes: u64) -> bool {
    let lengths = NUMBERS
        .iter()
        .flat_map(|changed| NUMBERS.iter().map(move |given| (*changed, *given)));
    lengths
        .filter(|((changed, _), (given, _))| OK_BYTES + changed + given == length_bytes)
        .any(|(changed, given)| {
            let seen = &tail[..4];
            let fit =
                is_encoded_number(seen, 0, given) && is_encoded_number(seen, given.0, changed);
            // With two short numbers the type is seen too.
            fit && (length_bytes != OK_BYTES + 2 || tail[1] == OK)
        })
}

/// Whether a number of some length, with so many bytes after it, is one, as far as its bytes are seen. Of one of nine
/// bytes the last is zero: nobody has so many rows.
fn is_encoded_number(seen: &[u8], after: u64, (length, mark): (u64, u8)) -> bool {
    let at = |bytes: u64| {
        let bytes = usize::try_from(bytes).ok()?;
        Some(seen[seen.len().checked_sub(bytes)?])
    };
    let first = at(after + length).is_none_or(|byte| match length {
        1 => byte <= 250,
        _ => byte == mark,
    });
    first && (length < 9 || at(after + 1).is_none_or(|byte| byte == 0))
}

/// Status by the flags, if they and the number of warnings are such as servers send.
fn status_of_flags(flags: u16, warnings: u16) -> Option<TransactionStatus> {
    let in_transaction = flags & IN_TRANSACTION != 0;
    let read_only = flags & IN_READ_ONLY_TRANSACTION != 0;
    let plausible =
        flags & (UNUSED | STATE_CHANGED) == 0 && (in_transaction || !read_only) && warnings < 256;
    plausible.then_some(if in_transaction {
        TransactionStatus::InTransaction
    } else {
        TransactionStatus::Idle
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use TransactionStatus::{Idle, InTransaction};

    #[test]
    fn what_no_protocol_explains_is_unknown() {
        // A record of TLS, an answer of an HTTP server, a few bytes.
        for tail in [
            &b"\x91\x07\xd3\x28\xaa\x01\x45\x10"[..],
            b"</html>\n",
            b"+OK\r\n",
        ] {
            for length in [tail.len() as u64, 11, 90, 8192] {
                assert_eq!(reply_status(tail, length), TransactionStatus::Unknown);
            }
        }
    }

    #[test]
    fn ready_for_query_tells_the_status() {
        let ready = |letter: u8| [b'T', 0, b'Z', 0, 0, 0, 5, letter];
        assert_eq!(postgres_reply_status(&ready(b'I')), Some(Idle));
        assert_eq!(postgres_reply_status(&ready(b'T')), Some(InTransaction));
        assert_eq!(
            postgres_reply_status(&ready(b'E')),
            Some(TransactionStatus::Failed)
        );
        assert_eq!(postgres_reply_status(&ready(b'X')), None);
    }

    #[test]
    fn the_answer_to_a_sync_alone_tells_nothing() {
        assert_eq!(postgres_reply_status(b"Z\0\0\0\x05I"), None);
    }

    #[test]
    fn a_reply_that_goes_on_tells_nothing() {
        assert_eq!(postgres_reply_status(b""), None);
        assert_eq!(postgres_reply_status(b"\0\0\0\x05I"), None);
        assert_eq!(postgres_reply_status(b"12345678"), None);
    }

    /// The status of a reply that is seen whole up to its last eight bytes.
    fn of(reply: &[u8]) -> Option<TransactionStatus> {
        mysql_reply_status(&reply[reply.len() - 8..], reply.len() as u64)
    }

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![payload.len() as u8, 0, 0, sequence];
        packet.extend(payload);
        packet
    }

    /// Columns and rows, then the last packet.
    fn rows(last: &[u8]) -> Vec<u8> {
        let mut reply = packet(1, &[1]);
        reply.extend(packet(
            2,
            b"\x03def\0\0\0\x011\0\x0c?\0\x01\0\0\0\x08\x81\0\0\0\0",
        ));
        reply.extend(packet(3, &[0xfe, 0, 0, 2, 0]));
        reply.extend(packet(4, b"\x011"));
        reply.extend(packet(5, last));
        reply
    }

    #[test]
    fn begin_and_commit_are_told_apart() {
        assert_eq!(of(&packet(1, &[0, 0, 0, 3, 0, 0, 0])), Some(InTransaction));
        assert_eq!(of(&packet(1, &[0, 0, 0, 2, 0, 0, 0])), Some(Idle));
    }

    #[test]
    fn numbers_of_any_length_stand_before_the_flags() {
        for number in [
            &[250][..],
            &[0xfc, 0xff, 0xff],
            &[0xfd, 0x40, 0x0d, 3],
            &[0xfe, 1, 2, 3, 4, 5, 6, 0, 0],
        ] {
            for (before, after) in [(number, &[1][..]), (&[1][..], number), (number, number)] {
                let payload = [&[0], before, after, &[3, 0, 1, 0]].concat();
                assert_eq!(of(&packet(1, &payload)), Some(InTransaction), "{payload:?}");
            }
        }
    }

    #[test]
    fn rows_end_with_the_flags_in_either_form() {
        assert_eq!(of(&rows(&[0xfe, 0, 0, 3, 0])), Some(InTransaction));
        assert_eq!(of(&rows(&[0xfe, 2, 0, 0x22, 0])), Some(Idle));
        assert_eq!(of(&rows(&[0xfe, 0, 0, 0x23, 0, 0, 0])), Some(InTransaction));
        assert_eq!(of(&rows(&[0xfe, 0, 0, 2, 0, 1, 0])), Some(Idle));
    }

    #[test]
    fn a_message_or_an_error_hides_the_flags() {
        let update = b"\0\x01\0\x03\0\0\0\x28Rows matched: 1  Changed: 1  Warnings: 0";
        assert_eq!(of(&packet(1, update)), None);
        let error = b"\xff\x15\x04#28000Access denied for user";
        assert_eq!(of(&packet(1, error)), None);
        let tracked = b"\0\0\0\x02\x40\0\0\0\x11\0\x0f\nautocommit\x03OFF";
        assert_eq!(of(&packet(1, tracked)), None);
    }

    #[test]
    fn a_tracked_state_tells_the_status() {
        let reply = |state: &[u8]| {
            packet(
                1,
                &[b"\0\0\0\x02\x40\0\0\0\x0b\x05\x09\x08", state].concat(),
            )
        };
        assert_eq!(of(&reply(b"T_______")), Some(InTransaction));
        assert_eq!(of(&reply(b"I_R_____")), Some(InTransaction));
        assert_eq!(of(&reply(b"________")), Some(Idle));
        assert_eq!(of(&reply(b"T____x__")), None);
        let longer = packet(1, b"\0\0\0\x02\0\0\0\x11Rows matched: ________");
        assert_eq!(of(&longer), None);
    }

    #[test]
    fn a_prepared_statement_without_parameters_is_no_ok_packet() {
        assert_eq!(of(&packet(1, &[0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])), None);
    }

    #[test]
    fn flags_that_no_server_sets_are_none() {
        assert_eq!(of(&packet(1, &[0, 0, 0, 4, 0, 0, 0])), None);
        assert_eq!(of(&packet(1, &[0, 0, 0, 2, 0x20, 0, 0])), None);
        assert_eq!(of(&packet(1, &[0, 0, 0, 2, 0, 0, 9])), None);
    }
}
