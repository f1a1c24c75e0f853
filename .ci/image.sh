#!/usr/bin/env bash
# The image for both platforms, as an OCI image layout in dist/image, from the binaries of `make dist`.
#
#   .ci/image.sh              with buildah, podman or docker, whichever is there
#   ENGINE=podman .ci/image.sh
#
# Nothing is pushed anywhere: `skopeo copy oci:dist/image docker://…`, `podman push` or `crane push` does that.
# https://github.com/opencontainers/image-spec/blob/main/image-layout.md
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf '  %s\n' "$2" >&2
  exit 1
}

for arch in amd64 arm64; do
  [ -x "dist/network-operator-linux-$arch" ] || die "dist/network-operator-linux-$arch is not there" "make dist"
done
engine=${ENGINE:-$(for program in buildah podman docker; do command -v $program && break; done || true)}
[ -n "$engine" ] || die "neither buildah, podman nor docker is installed" "on Debian: apt-get install buildah"
name=network-operator
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
source=${IMAGE_SOURCE:-$(git remote get-url origin 2>/dev/null | grep '^https://' || echo unknown)}
# The time of the commit instead of now: the same sources give the same digest.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision" --build-arg "SOURCE=$source")

# Only what goes in: an engine may send the whole folder to its server, with gigabytes of build caches.
work=$PWD/target/image
rm -rf "$work" dist/image
mkdir -p "$work/context/dist" "$work/context/rules"
cp dist/network-operator-linux-* "$work/context/dist"
cp rules/network.yaml "$work/context/rules"
cp Containerfile "$work/context"
# Whatever umask this runs with, the layers are the same.
find "$work/context" -type d -exec chmod 755 {} + -o -type f -name 'network-operator-*' -exec chmod 755 {} + -o -type f -exec chmod 644 {} +

case "$(basename "$engine")" in
buildah | podman)
  # Storage of its own: no daemon, no overlay mounts, nothing left in the user's.
  storage=(--root "$work/root" --runroot "$work/runroot" --storage-driver vfs)
  run() { "$engine" "${storage[@]}" "$@"; }
  run manifest create "$name:$version" >/dev/null
  for arch in amd64 arm64; do
    run build --isolation chroot --format oci --platform "linux/$arch" --timestamp "$SOURCE_DATE_EPOCH" \
      "${arguments[@]}" --tag "$name:$version-$arch" --file Containerfile "$work/context" >"$work/$arch.log" 2>&1 ||
      die "cannot build the image for linux/$arch: $(tail -n 3 "$work/$arch.log")"
    run manifest add "$name:$version" "$name:$version-$arch" >/dev/null
  done
  run manifest push --all "$name:$version" "oci:$PWD/dist/image:$version" >"$work/push.log" 2>&1 ||
    die "cannot write dist/image: $(tail -n 3 "$work/push.log")"
  ;;
docker)
  "$engine" buildx build --platform linux/amd64,linux/arm64 --provenance=false --file "$work/context/Containerfile" "${arguments[@]}" \
    --output "type=oci,dest=$work/image.tar,name=$name:$version,rewrite-timestamp=true" "$work/context"
  mkdir -p dist/image && tar -xf "$work/image.tar" -C dist/image
  ;;
*) die "«$engine» is not an engine that is known here" "buildah, podman or docker" ;;
esac
rm -rf "$work"
echo "dist/image: $name:$version for linux/amd64 and linux/arm64"
