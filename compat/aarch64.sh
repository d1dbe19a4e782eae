#!/usr/bin/env bash
# Compiles all crates for aarch64, and runs the tests that need no aarch64 kernel under qemu's user mode.
# The compiler is found by tools/aarch64-rust.sh.
#   usage: compat/aarch64.sh [CRATE ...]     without one, all that can be tested
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/aarch64-rust.sh

# Tests that emulation cannot run, besides those that skip themselves:
readonly SKIPPED=(
  # traces a program: under qemu the kernel, and the numbers of its calls, are the host's
  capture::tests::live
  # start themselves as a second process: an aarch64 program, which the host's kernel cannot start
  killed_writer
  # gives memory back by MADV_DONTNEED_LOCKED, which qemu takes for a hint and leaves out
  a_discarded_range_is_zero
  # compares the time of requests with a model's
  a_live_disk_takes_the_time
)

tools/debian-packages.sh aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static
aarch64_compiler

export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
# Emulated code is slow enough without being compiled unoptimised; overflow checks and assertions stay.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0

# As maturin builds the module: Python's own symbols are found when it is loaded.
cargo build --quiet --locked --target "$AARCH64" -p tierwise-bindings --features pyo3/extension-module

[ $# -gt 0 ] && crates=("${@/#/--package=tierwise-}") || crates=(--workspace --exclude tierwise-bindings)
echo "left out under emulation: ${SKIPPED[*]} (reasons in $0); compiled only: the bindings"
# No examples in documentation: rustdoc would have to be of the compiler's version too.
cargo test --tests --locked --target "$AARCH64" --no-fail-fast "${crates[@]}" -- "${SKIPPED[@]/#/--skip=}"
