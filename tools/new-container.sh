#!/usr/bin/env bash
# Prepares a new container of the image rust:1-* for `make`: Debian's venv, the formatter and the linter of Rust.
#   usage: tools/new-container.sh [PACKAGE ...]     further Debian packages
set -euo pipefail
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git make python3-venv "$@" >/dev/null
rustup component add clippy rustfmt
# The files belong to the user outside.
git config --global --add safe.directory "$PWD"
