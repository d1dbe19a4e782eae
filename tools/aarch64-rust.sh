# shellcheck shell=bash
# Sourced: finds a compiler with the standard library of aarch64, and exports RUSTC if it is not the one at hand.
# That is the compiler at hand, if rustup can give it that target; else Debian's own, unpacked into target/.
# Called from the project's directory; `aarch64_compiler` fails where neither can be had.
AARCH64=aarch64-unknown-linux-gnu

aarch64_compiler() {
  [ -d "$(rustc --print sysroot)/lib/rustlib/$AARCH64" ] && return
  timeout 300 rustup target add "$AARCH64" && return
  command -v apt-get dpkg >/dev/null || return
  debians_compiler
}

# Debian's compiler and the standard library of both processors, of one version; nothing is installed.
debians_compiler() {
  local place=$PWD/target/debian-rust apt std llvm package
  export RUSTC=$place/rustc
  [ -x "$RUSTC" ] && return  # written last
  mkdir -p "$place/lists/partial" "$place/packages" || return
  apt=(-qq -o "Dir::State::lists=$place/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root)
  apt-get "${apt[@]}" update || return
  std=$(apt-cache "${apt[@]}" depends libstd-rust-web-dev | sed -n 's/.*Depends: //p')
  llvm=$(apt-cache "${apt[@]}" depends "$std" | sed -n 's/.*Depends: \(libllvm\)/\1/p')
  for package in rustc-web "$std" "$llvm" libstd-rust-web-dev libstd-rust-web-dev:arm64; do
    (cd "$place/packages" && apt-get "${apt[@]}" download "$package") || return
  done
  for package in "$place"/packages/*.deb; do dpkg -x "$package" "$place/root" || return; done
  rm -r "$place/packages"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' \
    "$place/root/usr/lib/x86_64-linux-gnu" "$place/root/usr/bin/rustc" >"$RUSTC"
  chmod +x "$RUSTC"
}
