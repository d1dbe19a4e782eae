//! What calls ask, by the numbers that the kernel's headers give to their names.

use std::env::consts::ARCH;

use tierwise_recording::CallKind::{self, *};

use crate::tests::kernel_table;
use crate::timeline::syscalls::{self, Change};

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
    let Some(numbers) = kernel_table::numbers(ARCH) else {
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
            assert_eq!(syscalls::shape(number).kind, kind, "{name}");
        }
    }
    for (name, &number) in &numbers {
        let changes = syscalls::shape(number).change != Change::None;
        assert_eq!(changes, has(CHANGES, name), "{name}");
        assert_eq!(
            syscalls::unlinks(number),
            has("unlink unlinkat", name),
            "{name}"
        );
        assert_eq!(syscalls::shortens(number), name == "ftruncate", "{name}");
        let is_known = KINDS.iter().any(|(_, names)| has(names, name));
        let kind = syscalls::shape(number).kind;
        assert_eq!(kind != Other, is_known, "{name} is {kind:?}");
    }
}

fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}
