#!/usr/bin/env bash
# Installs the source distribution in dist/ with pip, and checks how its SQLite was compiled. Needs Rust, a C
# compiler and strace.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly PLACE=$PWD/target/sdist
rm -rf "$PLACE"
"${PYTHON:-python3}" -m venv "$PLACE"
# From elsewhere, so that cargo finds no settings but those in the archive.
archive=$(realpath dist/tierwise-*.tar.gz)
(cd / && "$PLACE/bin/python" -m pip install --quiet --no-deps "$archive")
"$PLACE/bin/python" tools/check_sqlite.py
