#!/usr/bin/env bash
# A Network is created, changed and deleted, and the operator's log is watched: on a real API server, started for this and
# gone afterwards. Fails if something that should happen does not.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/demo/lib.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/network-operator-demo.XXXXXX")
end() {
  local code=$?
  trap - EXIT
  stop_all || true
  rm -rf "$work"
  exit "$code"
}
trap end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

title() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

# shown COMMAND…: prints a command, as a user would type it, and runs it.
shown() {
  local text='' word
  for word in "$@"; do
    case $word in *[!A-Za-z0-9_./:=,@-]*) word="'$word'" ;; esac
    text+=" $word"
  done
  printf '%s$%s%s\n' "$bold" "$text" "$plain"
  "$@"
}

# What the operator has logged since this was last called.
seen=0
show_log() {
  local all
  all=$(wc -l <"$operator_log")
  printf '%sthe operator'"'"'s log:%s\n' "$dim" "$plain"
  sed -n "$((seen + 1)),${all}p" "$operator_log" | sed -E 's/^[0-9-]+T([0-9:]+)[.0-9]*Z +/  | \1 /'
  seen=$all
}

logged() { sed -n "$((seen + 1)),\$p" "$operator_log" | grep -Eq "$1"; }
get() { kubectl --namespace default get "$@"; }
is() { [ "$(get "$2" "$3" -o jsonpath="$4" 2>/dev/null)" = "$1" ]; }
gone() { [ -z "$(get configmaps,services,endpointslices -l "$children" -o name)" ]; }
ready() {
  local generation
  generation=$(get network example-network -o jsonpath='{.metadata.generation}')
  is "$generation True" network example-network '{.status.observedGeneration} {.status.conditions[?(@.type=="Ready")].status}'
}

children=samplecrd.k8s.io/network=example-network
show_children() { shown kubectl get configmaps,services,endpointslices -l "$children"; }
show_data() {
  printf '%sthe data of ConfigMap example-network-network:%s\n' "$dim" "$plain"
  get configmap example-network-network -o go-template='{{range $key, $value := .data}}  {{$key}}: {{$value}}{{"\n"}}{{end}}'
}

build_all

title "Start"
start_control_plane
say "A Kubernetes $(kubectl get --raw /version | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p') API server, with the Network CRD and nothing else."
start_operator "$work/operator.log"
wait_until 60 "the operator has read the cluster" logged 'caches are in sync'
say "The operator runs beside it, with the rules in rules/."
show_log

title "Create: a Network becomes a ConfigMap, a Service and an EndpointSlice"
sed 's/^/  /' tests/demo/example-network.yaml
shown kubectl apply -f tests/demo/example-network.yaml
wait_until 60 "the operator logs what it created" logged 'default/example-network: created ConfigMap'
wait_until 60 "the Network is ready" ready
wait_until 10 "the gateway is in the ConfigMap" is 192.168.0.1 configmap example-network-network '{.data.gateway}'
wait_until 10 "the gateway is behind the Service" is 192.168.0.1 endpointslice example-network-gateway '{.endpoints[0].addresses[0]}'
show_log
shown kubectl get networks
show_children
show_data

title "Change: another gateway"
shown kubectl patch network example-network --type=merge --patch '{"spec":{"gateway":"192.168.255.254"}}'
wait_until 60 "the operator logs what it changed" logged 'default/example-network: changed ConfigMap'
wait_until 60 "the new gateway is in the ConfigMap" is 192.168.255.254 configmap example-network-network '{.data.gateway}'
wait_until 60 "the new gateway is behind the Service" is 192.168.255.254 endpointslice example-network-gateway '{.endpoints[0].addresses[0]}'
wait_until 60 "the Network is ready again" ready
show_log
shown kubectl get networks
show_data
shown kubectl get endpointslice example-network-gateway

title "Delete: the garbage collector takes the children, since the Network owns them"
shown kubectl delete network example-network
wait_until 60 "the operator logs that the Network is deleted" logged 'default/example-network: deleted'
wait_until 60 "the children are gone" gone
show_log
show_children

title "Stop"
stop_all || die "the operator did not end well" "$(operator_last_words)"
show_log
say "Operator and control plane are stopped, and nothing is left behind. \`make dev\` keeps them running for you to play with."
