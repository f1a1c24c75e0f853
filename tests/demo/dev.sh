#!/usr/bin/env bash
# A playground: control plane and operator, until you have enough of it.
#
#   dev.sh         in the foreground, with the operator's log; Ctrl-C ends both
#   dev.sh start   in the background; returns when both are ready
#   dev.sh stop    ends what `start` started
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/demo/lib.sh

work=$PWD/target/dev

# The process id of the playground that is running, if any. The file may be left from one that was killed, and its number
# may be another program's by now.
playground() {
  local pid
  pid=$(cat "$work/pid" 2>/dev/null) || return 1
  case $(ps -p "$pid" -o args= 2>/dev/null) in *dev.sh*) echo "$pid" ;; *) return 1 ;; esac
}

foreground() {
  local pid
  if pid=$(playground) && [ "$pid" != $$ ]; then
    die "a playground is running already (process $pid)" "end it with \`make dev-stop\`, or use it: export KUBECONFIG=$work/control-plane/kubeconfig"
  fi
  build_all
  mkdir -p "$work"
  rm -f "$work"/*alive "$work/control-plane.json"
  trap end EXIT
  trap 'exit 0' INT TERM HUP
  echo $$ >"$work/pid"

  start_control_plane --dir "$work/control-plane"
  say
  say "${bold}A Kubernetes API server is running, with the Network CRD. In another terminal:$plain"
  say
  say "  export KUBECONFIG=$KUBECONFIG"
  say "  kubectl apply -f tests/demo/example-network.yaml"
  say "  kubectl get networks"
  say
  say "Edit rules/network.yaml, and the operator follows at once. ${1:-Ctrl-C ends it all.} This is the operator's log:"
  say
  start_operator -
  wait_for_end
}

# Until one of the two ends by itself, which neither should.
wait_for_end() {
  while running "$operator_pid" && running "$control_plane_pid"; do sleep 1; done
  running "$operator_pid" || { operator_pid='' && die "the operator ended"; }
  die "the control plane ended" "$(tail -n 5 "$work/control-plane.log")"
}

end() {
  local code=$?
  trap - EXIT
  stop_all || true
  rm -f "$work"/*alive "$work/pid"
  exit "$code"
}

start() {
  local pid
  if pid=$(playground); then
    say "It is running already (process $pid)."
  else
    build_all
    mkdir -p "$work"
    rm -f "$work/log"
    nohup "$0" background </dev/null >"$work/log" 2>&1 &
    background_pid=$!
    wait_until 180 "the operator has read the cluster" ready_or_ended
    running "$background_pid" || die "it did not start" "$(tail -n 20 "$work/log")"
  fi
  say
  say "The operator's log is in $work/log; \`make dev-stop\` ends it. To use it:"
  say
  say "  export KUBECONFIG=$work/control-plane/kubeconfig"
}

ready_or_ended() { grep -q 'caches are in sync' "$work/log" || ! running "$background_pid"; }

stop() {
  local pid
  pid=$(playground) || { say "No playground is running." && return; }
  kill -TERM "$pid"
  wait_until 30 "process $pid ends" not_running "$pid"
  say "Operator and control plane are stopped."
}

not_running() { ! running "$1"; }

case ${1:-} in
'') foreground ;;
background) foreground '`make dev-stop` ends it all.' ;;
start) start ;;
stop) stop ;;
*) die "unknown argument: $1" "known are: start, stop" ;;
esac
