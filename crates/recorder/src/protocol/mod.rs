//! Reads the status of a session's transaction from the end of a database's reply, by protocol.

mod mysql;
mod postgresql;

use tierwise_recording::TransactionStatus;

/// Bytes at the end of a reply that are looked at.
pub const TAIL_BYTES: usize = 8;

/// The status in the last bytes of `length_bytes` that were sent; `Unknown` where no protocol explains them.
pub fn status(tail: &[u8], length_bytes: u64) -> TransactionStatus {
    postgresql::status(tail)
        .or_else(|| mysql::status(tail, length_bytes))
        .unwrap_or(TransactionStatus::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_protocol_explains_is_unknown() {
        // A record of TLS, an answer of an HTTP server, a few bytes.
        for tail in [
            &b"\x91\x07\xd3\x28\xaa\x01\x45\x10"[..],
            b"</html>\n",
            b"+OK\r\n",
        ] {
            for length in [tail.len() as u64, 11, 90, 8192] {
                assert_eq!(status(tail, length), TransactionStatus::Unknown);
            }
        }
    }
}
