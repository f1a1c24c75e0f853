# What the demo and the playground share: building, starting, waiting with a limit, and leaving nothing behind.
# To be sourced, from the folder of the repository, by a script that has set `work`, a folder for logs.

export KUBE_VERSION="${KUBE_VERSION:-v1.36.3}"

bold='' dim='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'
fi

say() { printf '%s\n' "$*"; }

# die MESSAGE [HINT]: ends the script, and with it everything that it started.
die() {
  printf '%serror%s: %s\n' "$red" "$plain" "$1" >&2
  [ -z "${2:-}" ] || printf '  %s\n' "$2" >&2
  exit 1
}

# need PROGRAM: says how to get it when it is not there.
need() {
  # Where the installers put them; a login shell has these folders in its PATH, others may not.
  PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:/usr/local/go/bin"
  command -v "$1" >/dev/null && return
  case "$1" in
  go) die "Go is not installed" "it compiles the API server: see https://go.dev/dl" ;;
  cargo) die "Rust is not installed" "see https://rustup.rs" ;;
  kubectl) die "kubectl is not installed" "see https://kubernetes.io/docs/tasks/tools" ;;
  *) die "$1 is not installed" ;;
  esac
}

build_control_plane() {
  if [ -z "${KUBEBUILDER_ASSETS:-}" ] && [ ! -x "tests/control-plane/bin/$KUBE_VERSION/kube-controller-manager" ]; then
    say "${bold}Compiling etcd and the API server of Kubernetes $KUBE_VERSION from source.$plain Once; on two cores it takes 6 to 10 minutes." >&2
  fi
  (cd tests/control-plane && go run . build)
}

# The debug build: it takes a third of the time of a release build, which links everything once more into one optimised
# whole, and a few Networks do not notice. Its dependencies are optimised all the same (see Cargo.toml).
build_operator() {
  local target
  say "${bold}Compiling the operator$plain" >&2
  cargo build --locked --bin network-operator
  target=$(cargo metadata --locked --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
  operator="$target/debug/network-operator"
}

build_all() {
  need cargo
  need go
  need kubectl
  build_control_plane >/dev/null
  build_operator
}

# Each child gets a process group of its own, so that Ctrl-C reaches this script alone and it can end them in order.
in_background() {
  set -m
  "$@" &
  set +m
  started=$!
}

# The pipe ties the lives of the others to this script's: whatever happens to it, the kernel closes its end.
start_control_plane() {
  mkfifo "$work/alive"
  in_background run_control_plane "$@"
  control_plane_pid=$started
  exec 9>"$work/alive"
  wait_until 120 "the API server starts" test -s "$work/control-plane.json"
  KUBECONFIG=$(sed -n 's/.*"kubeconfig":"\([^"]*\)".*/\1/p' "$work/control-plane.json")
  # What kubectl remembers of a server that is soon gone is of no use to anybody later.
  export KUBECONFIG KUBECACHEDIR="$work/kubectl-cache"
}

run_control_plane() {
  # The CRD comes first: the garbage collector looks for kinds at its start, and then every 30 seconds only.
  exec tests/control-plane/bin/control-plane up --crd crds/networks.yaml "$@" \
    <"$work/alive" >"$work/control-plane.json" 2>"$work/control-plane.log"
}

# start_operator LOG: LOG is a file, or `-` for where this script's own stderr goes.
start_operator() {
  operator_log=$1
  mkfifo "$work/operator-alive"
  in_background run_operator
  operator_pid=$started
  in_background end_operator_when_orphaned
  watcher_pid=$started
  exec 8>"$work/operator-alive"
}

run_operator() {
  exec 9>&-
  [ "$operator_log" = - ] || exec 2>"$operator_log"
  # RUST_LOG is set for whatever else the user works on. A single operator need not be elected.
  exec env -u RUST_LOG "$operator" run --log-format text --kubeconfig "$KUBECONFIG" --rules rules --leader-elect=false </dev/null
}

# The operator, unlike the control plane, does not end with its standard input: it is a program for clusters.
end_operator_when_orphaned() {
  exec 9>&-
  read -r _ <"$work/operator-alive" || kill -TERM "$operator_pid"
}

running() { kill -0 "$1" 2>/dev/null; }

# wait_until SECONDS WHAT COMMAND…: runs the command again and again until it succeeds.
wait_until() {
  local limit=$1 what=$2 end
  shift 2
  end=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    [ -z "${control_plane_pid:-}" ] || running "$control_plane_pid" || die "the control plane ended while waiting until $what" "$(tail -n 5 "$work/control-plane.log")"
    [ -z "${operator_pid:-}" ] || running "$operator_pid" || die "the operator ended while waiting until $what" "$(operator_last_words)"
    [ $SECONDS -lt $end ] || die "not after $limit seconds: $what" "$(operator_last_words)"
    sleep 0.2
  done
}

operator_last_words() {
  [ ! -f "${operator_log:-}" ] || { echo "the operator's last words:" && tail -n 5 "$operator_log" | sed 's/^/    /'; }
}

# Ends the operator, then the control plane. Called again, it does nothing.
stop_all() {
  local code=0
  if [ -n "${operator_pid:-}" ]; then
    kill "$watcher_pid" 2>/dev/null || true
    kill -TERM "$operator_pid" 2>/dev/null || true
    wait "$operator_pid" 2>/dev/null || code=$?
    operator_pid=''
  fi
  if [ -n "${control_plane_pid:-}" ]; then
    kill -TERM "$control_plane_pid" 2>/dev/null || true
    wait "$control_plane_pid" 2>/dev/null || true
    control_plane_pid=''
  fi
  return $code
}
