#!/bin/sh
# Builds tierwise-record, the recorder as one static program, and prints its path. With musl where that is installed.
set -eu
cd "$(dirname "$0")/.."
machine=$(uname -m)
target=$machine-unknown-linux-gnu
if [ -d "$(rustc --print sysroot)/lib/rustlib/$machine-unknown-linux-musl" ] && command -v musl-gcc >/dev/null; then
    target=$machine-unknown-linux-musl
fi
# At fixed addresses, as ldd calls no other program static.
RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" \
    cargo build --quiet --locked --profile recorder --target "$target" -p tierwise-recorder >&2
echo "$(realpath "${CARGO_TARGET_DIR:-target}")/$target/recorder/tierwise-record"
