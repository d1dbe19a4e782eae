#!/usr/bin/env bash
# Unpacks the aarch64 wheel in dist/ beside Debian's Python of that processor, and predicts under qemu's user mode.
# The answer must be that of this machine's tierwise. Needs root, mmdebstrap and `make env`; leaves target/aarch64-root.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly ROOT=$PWD/target/aarch64-root SUITE=trixie PYTHON=3.13 HERE=$PWD/.venv/bin
readonly QUESTION=(predict "$PWD/examples/recordings/keyed-update" --place data=ssd-pcie-slc-2008 --format json)

wheels=(dist/tierwise-*_aarch64.whl)
[ -e "${wheels[0]}" ] || { echo "$0: no wheel for aarch64 in dist: run 'tools/wheels.sh aarch64'" >&2 && exit 2; }
tools/debian-packages.sh mmdebstrap:mmdebstrap qemu-aarch64-static:qemu-user-static
mirror=$(cd compat && "$HERE/python" -c 'import rootfs; print(rootfs.debian_mirror())')

# Only unpacked: no program of that processor runs, so the kernel need not start one.
rm -rf "$ROOT"
mmdebstrap --quiet --architectures=arm64 --variant=extract --include=python3 "$SUITE" "$ROOT" "deb $mirror $SUITE main"
[ -e "$ROOT/lib" ] || ln -s usr/lib "$ROOT/lib"
"$HERE/python" -m pip install --quiet --disable-pip-version-check --target "$ROOT/packages" --only-binary=:all: \
  --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --python-version "$PYTHON" "${wheels[0]}"
file=$ROOT/packages/tierwise/_core.abi3.so
echo "$(stat --format %s "${wheels[0]}") bytes; $(realpath --relative-to "$ROOT" "$file"): $(stat --format %s "$file") bytes"

"$HERE/tierwise" "${QUESTION[@]}" >"$ROOT/here.json"
PYTHONPATH=$ROOT/packages qemu-aarch64-static -L "$ROOT" "$ROOT/usr/bin/python$PYTHON" -m tierwise "${QUESTION[@]}" \
  >"$ROOT/there.json"
cmp "$ROOT/here.json" "$ROOT/there.json"
echo "the wheel for aarch64 gives the answer of $(uname -m)"
