#!/usr/bin/env bash
# Compiles all crates for aarch64, and runs the tests that need no aarch64 kernel under qemu's user mode.
# The compiler is the one at hand, if rustup can give it that target; else Debian's own, unpacked into target/.
#   usage: compat/aarch64.sh [CRATE ...]     without one, all that can be tested
set -euo pipefail
cd "$(dirname "$0")/.."
readonly TRIPLE=aarch64-unknown-linux-gnu

# Tests that emulation cannot run, besides those that skip themselves:
readonly SKIPPED=(
  # traces a program: under qemu the kernel, and the numbers of its calls, are the host's
  capture::tests::live
  # start themselves as a second process: an aarch64 program, which the host's kernel cannot start
  crash::
  # gives memory back by MADV_DONTNEED_LOCKED, which qemu takes for a hint and leaves out
  a_discarded_range_is_zero
  # compares the time of requests with a model's
  a_live_disk_takes_the_time
)

# Debian's compiler and the standard library of both processors, of one version; nothing is installed.
debians_compiler() {
  local place=$PWD/target/debian-rust apt std llvm package
  mkdir -p "$place/lists/partial" "$place/packages"
  apt=(-qq -o "Dir::State::lists=$place/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root)
  apt-get "${apt[@]}" update
  std=$(apt-cache "${apt[@]}" depends libstd-rust-web-dev | sed -n 's/.*Depends: //p')
  llvm=$(apt-cache "${apt[@]}" depends "$std" | sed -n 's/.*Depends: \(libllvm\)/\1/p')
  for package in rustc-web "$std" "$llvm" libstd-rust-web-dev libstd-rust-web-dev:arm64; do
    (cd "$place/packages" && apt-get "${apt[@]}" download "$package")
  done
  for package in "$place"/packages/*.deb; do dpkg -x "$package" "$place/root"; done
  rm -r "$place/packages"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' \
    "$place/root/usr/lib/x86_64-linux-gnu" "$place/root/usr/bin/rustc" >"$place/rustc"
  chmod +x "$place/rustc"
  export RUSTC=$place/rustc
}

tools/debian-packages.sh aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$TRIPLE" ] && ! timeout 300 rustup target add "$TRIPLE"; then
  debians_compiler
fi

export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
# Emulated code is slow enough without being compiled unoptimised; overflow checks and assertions stay.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0

# As maturin builds the module: Python's own symbols are found when it is loaded.
cargo build --quiet --locked --target "$TRIPLE" -p tierwise-bindings --features pyo3/extension-module

[ $# -gt 0 ] && crates=("${@/#/--package=tierwise-}") || crates=(--workspace --exclude tierwise-bindings)
echo "left out under emulation: ${SKIPPED[*]} (reasons in $0); compiled only: the bindings"
# No examples in documentation: rustdoc would have to be of the compiler's version too.
cargo test --tests --locked --target "$TRIPLE" --no-fail-fast "${crates[@]}" -- "${SKIPPED[@]/#/--skip=}"
