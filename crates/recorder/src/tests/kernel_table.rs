//! System calls as the kernel's own headers number them.

use std::collections::HashMap;
use std::fs;

/// The headers of linux-libc-dev, by processor: its name, and where Debian and others put the table.
const HEADERS: [(&str, [&str; 2]); 2] = [
    (
        "x86_64",
        [
            "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
            "/usr/include/asm/unistd_64.h",
        ],
    ),
    (
        "aarch64",
        [
            "/usr/include/asm-generic/unistd.h",
            "/usr/aarch64-linux-gnu/include/asm-generic/unistd.h",
        ],
    ),
];

/// Numbers by name; none, with a message, where no header tells them.
pub fn numbers(processor: &str) -> Option<HashMap<String, u32>> {
    let (_, paths) = HEADERS.iter().find(|(name, _)| *name == processor)?;
    let Some(text) = paths.iter().find_map(|path| fs::read_to_string(path).ok()) else {
        eprintln!(
            "skipped: no kernel header tells the numbers of {processor}: install linux-libc-dev"
        );
        return None;
    };
    let lines = text.lines();
    let mut numbers: HashMap<_, _> = lines.filter_map(definition).collect();
    // The same number as sync_file_range, for processors of 32 bits.
    numbers.remove("sync_file_range2");
    assert!(numbers.len() > 250, "{} calls in {paths:?}", numbers.len());
    Some(numbers)
}

/// `#define __NR_read 63`, or `__NR3264_fcntl`, which `__NR_fcntl` stands for.
fn definition(line: &str) -> Option<(String, u32)> {
    let mut words = line.strip_prefix("#define __NR")?.split_whitespace();
    let (width, name) = words.next()?.split_once('_')?;
    let number = words.next()?.parse().ok()?;
    ["", "3264"]
        .contains(&width)
        .then(|| (name.to_owned(), number))
}
