#!/usr/bin/env bash
# Static binaries for both platforms, reproducible: dist/network-operator-linux-{amd64,arm64} and dist/SHA256SUMS.
#
#   .ci/dist.sh [amd64] [arm64]      both when none is named
#
# musl, since a static glibc cannot resolve names in an image without its files. zig is the C compiler and the linker for both
# targets. Where rustup has the targets' standard library, that is used; else a compiler with its source beside it compiles the
# standard library too: on Debian the packages rustc-web and rust-web-src.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
# A folder of its own: other flags than those of `cargo build`, which would recompile everything at every change of hands.
export CARGO_TARGET_DIR="${DIST_TARGET_DIR:-$PWD/target/dist}"
tools=$PWD/target/dist-tools

die() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf '  %s\n' "$2" >&2
  exit 1
}

# cargo-zigbuild and zig, in a folder of their own.
install_zigbuild() {
  command -v cargo-zigbuild >/dev/null && { command -v zig || python3 -m ziglang version; } >/dev/null 2>&1 && return
  [ -x "$tools/bin/cargo-zigbuild" ] || {
    python3 -m venv "$tools" && "$tools/bin/pip" install --quiet ziglang==0.17.1 cargo-zigbuild==0.24.1 ||
      die "cannot install zig and cargo-zigbuild" "python3 with venv and pip fetch them from PyPI: pip install ziglang cargo-zigbuild"
  }
  PATH="$tools/bin:$PATH"
}

std_of() { ls "$1/lib/rustlib/$2/lib/"libstd-*.rlib >/dev/null 2>&1; }

# choose_compiler TARGET: sets `compiler` and `build_std`.
choose_compiler() {
  local target=$1
  compiler=$(rustc --print sysroot)/bin/rustc build_std=()
  std_of "$(rustc --print sysroot)" "$target" && return
  if command -v rustup >/dev/null && timeout 120 rustup target add "$target" >/dev/null 2>&1 && std_of "$(rustc --print sysroot)" "$target"; then
    return
  fi
  if [ ! -e /usr/lib/rustlib/src/rust/library/std ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends rustc-web rust-web-src; } >/dev/null 2>&1 || true
  fi
  [ -x /usr/bin/rustc ] && [ -e /usr/lib/rustlib/src/rust/library/std ] ||
    die "no standard library for $target" "rustup target add $target; or, on Debian, apt-get install rustc-web rust-web-src"
  compiler=/usr/bin/rustc build_std=(-Zbuild-std=std,panic_unwind)
}

# build ARCH TARGET
build() {
  local arch=$1 target=$2 compiler build_std sysroot
  choose_compiler "$target"
  sysroot=$("$compiler" --print sysroot)
  echo "compiling for linux/$arch with $("$compiler" --version)${build_std:+, and its standard library}" >&2
  # Where the sources lay when it was built must not be in the binary: neither of use to anybody nor the same everywhere.
  RUSTC=$compiler RUSTC_BOOTSTRAP=${build_std:+1} SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} \
    RUSTFLAGS="-C target-feature=+crt-static${build_std:+ -C link-self-contained=no} \
--remap-path-prefix=$PWD=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$sysroot=/rust" \
    cargo zigbuild --release --locked --bin network-operator --target "$target" "${build_std[@]}"
  install -m 755 "$CARGO_TARGET_DIR/$target/release/network-operator" "dist/network-operator-linux-$arch"
}

command -v cargo >/dev/null || die "Rust is not installed" "see https://rustup.rs"
install_zigbuild
mkdir -p dist
[ $# -gt 0 ] || set -- amd64 arm64
for arch; do
  case "$arch" in
  amd64) build amd64 x86_64-unknown-linux-musl ;;
  arm64) build arm64 aarch64-unknown-linux-musl ;;
  *) die "there is no platform «$arch»" "amd64 or arm64" ;;
  esac
done
(cd dist && sha256sum network-operator-linux-* >SHA256SUMS && cat SHA256SUMS)
