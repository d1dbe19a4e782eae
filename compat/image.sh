#!/usr/bin/env bash
# Turns a plain Debian root into an image of tierwise. The Dockerfile runs it; fresh_root.py runs it where
# there is no container engine.
#   usage: compat/image.sh predict|lab FOLDER     FOLDER holds a wheel for this processor
set -euo pipefail
readonly kind=$1 folder=$2

packages=(python3-venv)
extra=
case $kind in
  predict) ;;
  lab)
    packages+=(e2fsprogs kmod mariadb-client-core mariadb-server-core mount procps xfsprogs)
    extra='[lab]'
    ;;
  *)
    echo "compat/image.sh: '$kind' is no image: predict or lab" >&2
    exit 2
    ;;
esac
wheels=("$folder"/tierwise-*"_$(uname -m).whl")
if [ ! -e "${wheels[0]}" ]; then
  echo "compat/image.sh: no wheel for $(uname -m) in $folder: run 'make wheels'" >&2
  exit 2
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
rm -rf /var/lib/apt/lists/*
id dba >/dev/null 2>&1 || useradd --create-home dba
install --directory --owner dba /work
python3 -m venv /opt/tierwise
/opt/tierwise/bin/python -m pip install --quiet --no-cache-dir "${wheels[0]}$extra"
ln -s /opt/tierwise/bin/tierwise /usr/local/bin/tierwise
