#!/usr/bin/env bash
# Makes sure that the commands which a make target needs are there.
# Called by root it installs their Debian packages; otherwise it names them in one message and fails.
#   usage: tools/debian-packages.sh COMMAND:PACKAGE ...
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

missing=()
for pair in "$@"; do
  command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing Debian packages: run 'apt-get install ${missing[*]}' as root, then call make again" >&2
  exit 2
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
