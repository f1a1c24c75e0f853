#!/usr/bin/env bash
# Compiles the control plane of KUBE_VERSION, unless that was done already; prints the folder it is in.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/demo/lib.sh

need go
build_control_plane
