//! PostgreSQL's protocol, version 3: a reply ends with ReadyForQuery, which tells the status in one letter.

use tierwise_recording::TransactionStatus;

/// Type and length of ReadyForQuery.
const READY_FOR_QUERY: [u8; 5] = [b'Z', 0, 0, 0, 5];

/// The status that the end of a reply tells; none if it is no ReadyForQuery, or nothing else: that answers a Sync
/// without statements, which ends no transaction.
pub fn status(tail: &[u8]) -> Option<TransactionStatus> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_for_query_tells_the_status() {
        let ready = |letter: u8| [b'T', 0, b'Z', 0, 0, 0, 5, letter];
        assert_eq!(status(&ready(b'I')), Some(TransactionStatus::Idle));
        assert_eq!(status(&ready(b'T')), Some(TransactionStatus::InTransaction));
        assert_eq!(status(&ready(b'E')), Some(TransactionStatus::Failed));
        assert_eq!(status(&ready(b'X')), None);
    }

    #[test]
    fn the_answer_to_a_sync_alone_tells_nothing() {
        assert_eq!(status(b"Z\0\0\0\x05I"), None);
    }

    #[test]
    fn a_reply_that_goes_on_tells_nothing() {
        assert_eq!(status(b""), None);
        assert_eq!(status(b"\0\0\0\x05I"), None);
        assert_eq!(status(b"12345678"), None);
    }
}
