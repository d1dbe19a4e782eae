#!/usr/bin/env bash
# Compiles the recorder's programs in the kernel, crates/recorder/bpf/tracer.bpf.c, to tracer.bpf.o in a directory.
#   usage: tools/bpf.sh [DIRECTORY]
set -euo pipefail
out=$(realpath "${1:-$(dirname "$0")/../crates/recorder/bpf}")
cd "$(dirname "$0")/../crates/recorder/bpf"
clang -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -fdebug-prefix-map="$PWD"=. \
    -c tracer.bpf.c -o "$out/tracer.bpf.o"
llvm-strip -g "$out/tracer.bpf.o"
