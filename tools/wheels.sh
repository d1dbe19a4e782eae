#!/usr/bin/env bash
# Builds dist/: the source distribution, and wheels (abi3: CPython 3.11 and later) for x86-64 and aarch64.
# zig links them against the symbols of glibc 2.17, which every distribution since 2014 has.
#   usage: tools/wheels.sh [sdist|x86_64|aarch64 ...]     without one, all three
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/aarch64-rust.sh
readonly TOOLS=$PWD/target/packaging
[ $# -gt 0 ] || set -- sdist x86_64 aarch64

[ -x "$TOOLS/bin/python" ] || "${PYTHON:-python3}" -m venv "$TOOLS"
"$TOOLS/bin/python" -m pip install --quiet "maturin[zig]>=1.9,<2"
export PATH=$TOOLS/bin:$PATH

wheel() {
  rm -f dist/tierwise-*"_$1.whl"
  maturin build --quiet --release --locked --zig --target "$1-unknown-linux-gnu" \
    --compatibility manylinux2014 --out dist
}

for part in "$@"; do
  case $part in
    sdist)
      rm -f dist/tierwise-*.tar.gz
      said=$(maturin sdist --out dist 2>&1) || { echo "$said" >&2 && exit 1; }
      ;;
    x86_64) wheel x86_64 ;;
    aarch64)
      if compiler=$(aarch64_compiler >&2 && echo "${RUSTC:-rustc}"); then
        RUSTC=$compiler wheel aarch64
      else
        echo "no wheel for aarch64: no standard library of that processor can be had here; .github/workflows/wheels.yml builds it" >&2
      fi
      ;;
    *)
      echo "tools/wheels.sh: '$part' is none of sdist, x86_64, aarch64" >&2
      exit 2
      ;;
  esac
done
ls -sh dist
