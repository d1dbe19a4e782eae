//! What system calls ask and which are recorded, by the numbers that the kernel's headers give to their names.

use std::collections::HashMap;
use std::env::consts::ARCH;
use std::fs;

use tierwise_recording::CallKind::{self, *};

use crate::timeline::syscalls::{self, DescriptorChange};

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
fn numbers(processor: &str) -> Option<HashMap<String, u32>> {
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

const KINDS: [(CallKind, &str); 11] = [
    (Read, "read readv pread64 preadv preadv2"),
    (
        Write,
        "write writev pwrite64 pwritev pwritev2 copy_file_range sendfile",
    ),
    (Sync, "fsync fdatasync syncfs sync_file_range msync sync"),
    (Resize, "fallocate ftruncate"),
    (Receive, "recvfrom recvmsg recvmmsg"),
    (Send, "sendto sendmsg sendmmsg"),
    (
        Poll,
        "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 accept accept4",
    ),
    (Lock, "futex futex_waitv semop semtimedop flock"),
    (Sleep, "nanosleep clock_nanosleep"),
    (Await, "io_uring_enter io_getevents io_pgetevents io_submit"),
    (
        Name,
        "open openat openat2 creat unlink unlinkat rename renameat renameat2",
    ),
];

/// Calls after which other numbers stand for files.
const CHANGES: &str = "open openat openat2 creat close close_range dup dup2 dup3 fcntl lseek socket \
    accept accept4 epoll_create1 eventfd2 timerfd_create signalfd4 io_uring_setup";

/// Of those above, what generic kernels, and so aarch64, do without.
const ONLY_ON_X86_64: &str = "epoll_wait poll select open creat unlink rename dup2";

#[test]
fn each_number_means_what_the_kernel_calls_it() {
    let Some(numbers) = numbers(ARCH) else {
        return;
    };
    let number = |name: &str| match numbers.get(name) {
        None if ARCH == "aarch64" && has(ONLY_ON_X86_64, name) => None,
        None => panic!("{ARCH} has no call {name}"),
        found => found.copied(),
    };
    for (kind, names) in KINDS {
        for (name, number) in names
            .split(' ')
            .filter_map(|name| Some((name, number(name)?)))
        {
            assert_eq!(syscalls::call_shape(number).kind, kind, "{name}");
        }
    }
    for (name, &number) in &numbers {
        let changes = syscalls::call_shape(number).change != DescriptorChange::None;
        assert_eq!(changes, has(CHANGES, name), "{name}");
        assert_eq!(
            syscalls::removes_name(number),
            has("unlink unlinkat", name),
            "{name}"
        );
        assert_eq!(
            syscalls::sets_file_length(number),
            name == "ftruncate",
            "{name}"
        );
        let is_known = KINDS.iter().any(|(_, names)| has(names, name));
        let kind = syscalls::call_shape(number).kind;
        assert_eq!(kind != Other, is_known, "{name} is {kind:?}");
    }
}

fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// The input and output of databases, their waits, and calls that change the numbers or names of files.
const RECORDED: &str = "\
    read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 sendfile copy_file_range \
    fsync fdatasync sync_file_range syncfs msync fallocate ftruncate truncate \
    open openat openat2 creat unlink unlinkat rename renameat renameat2 \
    futex futex_wait futex_waitv futex_wake semop semtimedop nanosleep clock_nanosleep \
    io_uring_setup io_uring_enter io_setup io_submit io_getevents io_pgetevents \
    close close_range dup dup2 dup3 fcntl socket socketpair accept accept4 connect pipe pipe2 eventfd \
    eventfd2 epoll_create epoll_create1 signalfd4 timerfd_create memfd_create \
    recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg \
    epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6";

#[test]
fn the_calls_of_databases_are_recorded_and_no_others() {
    let Some(numbers) = numbers(ARCH) else {
        return;
    };
    for (name, &number) in &numbers {
        assert_eq!(
            syscalls::is_recorded_call(number),
            has(RECORDED, name),
            "{name}"
        );
    }
}
