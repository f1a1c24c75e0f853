#!/usr/bin/env bash
# Every check and test of the project, in the order in which a fault costs the least time to find. All stages run, whatever
# the ones before them say; the last line is `N passed, N failed`.
#
# A test that cannot run here is counted as left out, with what to do about it. With CI=true that is a failure.
# System packages are installed only as root on a machine with apt.
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/demo/lib.sh

logs=$PWD/target/test-logs
mkdir -p "$logs"
rm -f "$logs"/*
table=$logs/summary
: >"$table"
left_out=()
passed=0 failed=0

trap 'exit 130' INT TERM

# stage NAME COMMAND…: runs it, counts its tests, remembers the result. A command that fails without a failed test (it did
# not compile, say) counts as one.
stage() {
  local name=$1 log began=$SECONDS code=0 word=ok ran good bad skipped
  shift
  log="$logs/${name// /-}.log"
  printf '\n%s== %s%s\n' "$bold" "$name" "$plain"
  "$@" </dev/null 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  ran=$(count <"$log")
  read -r good bad skipped <<<"$ran"
  if [ "$code" != 0 ]; then
    word=FAILED
    [ "$bad" != 0 ] || bad=1
  fi
  [ "$skipped" = 0 ] || leave_out "$skipped in stage «$name»" "see which in target/test-logs/${log##*/}"
  passed=$((passed + good)) failed=$((failed + bad))
  printf '%s|%s|%s|%s|%s|%s\n' "$name" "$word" "$good" "$bad" "$skipped" "$((SECONDS - began)) s" >>"$table"
  return "$code"
}

# Passed, failed and skipped tests in the output of `cargo test` and `go test -v`. Subtests of Go are not counted.
count() {
  awk '
    { gsub(/\033\[[0-9;]*m/, "") }
    /^test result: / { for (i = 2; i <= NF; i++) {
      if ($i == "passed;") p += $(i-1); if ($i == "failed;") f += $(i-1); if ($i == "ignored;") s += $(i-1) } }
    /^--- PASS: / { p++ } /^--- FAIL: / { f++ } /^--- SKIP: / { s++ }
    END { print p + 0, f + 0, s + 0 }'
}

# leave_out WHAT HINT
leave_out() { left_out+=("$1: $2"); }

install_kubectl() {
  (need kubectl) 2>/dev/null && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  say "kubectl is not installed; asking apt for it"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends kubernetes-client
}

control_plane_tests() (cd tests/control-plane && test -z "$(gofmt -l . | tee /dev/stderr)" && go vet ./... && go test -count=1 -v ./...)
other_go() {
  local module
  for module in tests/*/go.mod; do
    (cd "${module%/go.mod}" && test -z "$(gofmt -l . | tee /dev/stderr)" && go vet ./...) || return 1
  done
}

# Integration tests that start a control plane are those that use tests/support.
integration_tests() {
  local wanted=$1 file name kind arguments=()
  for file in tests/*.rs tests/*/main.rs; do
    name=${file#tests/} && name=${name%/main.rs} && name=${name%.rs}
    if grep -q 'support/mod.rs' "$file"; then kind=cluster; else kind=pure; fi
    [ "$kind" = "$wanted" ] && arguments+=(--test "$name")
  done
  [ ${#arguments[@]} = 0 ] || cargo test --locked --no-fail-fast "${arguments[@]}"
}

# With private items: the crate documentation is the walk-through for those who work on it, and its links must lead somewhere.
documentation() { RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --locked --no-deps --document-private-items; }

PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/local/go/bin"
began=$SECONDS
install_kubectl

have_cargo=1 have_cluster=1
(need cargo) || { have_cargo=0 && leave_out "everything in Rust" "install Rust, https://rustup.rs"; }
(need go) || { have_cluster=0 && leave_out "the control plane's tests, and the end-to-end tests" "install Go, https://go.dev/dl"; }
(need kubectl) || { leave_out "the end-to-end tests" "install kubectl, https://kubernetes.io/docs/tasks/tools"; no_kubectl=1; }

if [ $have_cargo = 1 ]; then
  if cargo fmt --version >/dev/null 2>&1; then stage "format" cargo fmt --check; else leave_out "format" "rustup component add rustfmt"; fi
fi
if [ $have_cluster = 1 ]; then
  stage "go vet" other_go
fi
if [ $have_cargo = 1 ]; then
  if cargo clippy --version >/dev/null 2>&1; then
    stage "clippy" cargo clippy --locked --all-targets -- -D warnings
  else
    leave_out "clippy" "rustup component add clippy"
  fi
  stage "documentation" documentation
  stage "compile the tests" cargo test --locked --no-run
  stage "unit tests" cargo test --locked --no-fail-fast --lib --bins
  stage "documentation tests" cargo test --locked --doc
  stage "tests without a cluster" integration_tests pure
fi
# One after the other: on two cores, the Go and the Rust compiler side by side only wait for each other.
if [ $have_cluster = 1 ]; then
  if stage "control plane" build_control_plane; then
    stage "control plane tests" control_plane_tests
  else
    have_cluster=0
    leave_out "the end-to-end tests" "the control plane could not be built"
  fi
fi
if [ $have_cargo = 1 ] && [ $have_cluster = 1 ] && [ -z "${no_kubectl:-}" ]; then
  stage "end-to-end tests" integration_tests cluster
fi

printf '\n%s== Summary%s (%d s)\n' "$bold" "$plain" $((SECONDS - began))
{ echo 'stage|result|passed|failed|left out|time' && cat "$table"; } | awk -F'|' '{ printf "%-26s%-8s%8s%8s%10s%9s\n", $1, $2, $3, $4, $5, $6 }'
if [ ${#left_out[@]} != 0 ]; then
  printf '\nLeft out:\n'
  printf '  %s\n' "${left_out[@]}"
fi
outcome=0
[ "$failed" = 0 ] || outcome=1
if [ ${#left_out[@]} != 0 ] && [ "${CI:-}" = true ]; then
  say "CI=true: what was left out is a failure"
  outcome=1
fi
say "$((passed + failed)) tests ran: $passed passed, $failed failed" >"$logs/result"
printf '\n%d passed, %d failed\n' "$passed" "$failed"
exit $outcome
