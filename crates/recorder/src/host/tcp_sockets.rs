//! Lines of `/proc/net/tcp` and `tcp6`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";
/// Its inode once nobody has it.
const GONE: u64 = 0;

/// Inode, both addresses and whether it listens, of a line of `/proc/net/tcp`.
pub fn tcp_line(line: &str) -> Option<(u64, SocketAddr, SocketAddr, bool)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let inode = words.get(9)?.parse().ok().filter(|inode| *inode != GONE)?;
    let (local, remote) = (address(words.get(1)?)?, address(words.get(2)?)?);
    Some((inode, local, remote, *words.get(3)? == LISTENING))
}

/// An address as hexadecimal words of the host's byte order, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = (0..digits.len()).step_by(8);
    let words = words.map(|at| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok());
    let bytes: Vec<u8> = words
        .collect::<Option<Vec<u32>>>()?
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    let ip = match *bytes.as_slice() {
        [a, b, c, d] => IpAddr::from([a, b, c, d]),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let told = |text| address(text).map(|found| found.to_string());
        let native = |text: &str, other: &str| match cfg!(target_endian = "little") {
            true => text.to_owned(),
            false => other.to_owned(),
        };
        let loopback = native("0100007F:1538", "7F000001:1538");
        assert_eq!(told(&loopback).as_deref(), Some("127.0.0.1:5432"));
        let mapped = native(
            "0000000000000000FFFF00000100007F:1538",
            "00000000000000000000FFFF7F000001:1538",
        );
        assert_eq!(told(&mapped).as_deref(), Some("127.0.0.1:5432"));
        assert_eq!(told("xyz"), None);
        assert_eq!(told("01:02"), None);
    }
}
