# Everything that is done with this repository, one command each. `make` alone lists them.
#
# Needed: Rust, Go and kubectl. Neither root nor containers: the API server is compiled from source into
# tests/control-plane/bin, once for each Kubernetes version.

# Version of the control plane that the demo and the tests run on.
KUBE_VERSION ?= v1.36.3
export KUBE_VERSION

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help build control-plane demo dev dev-start dev-stop test rbac

help: ## List these commands
	@sed -nE 's/^([a-z][a-z-]*):.*## (.*)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "%-21s%s\n", $$1, $$2 }'
	@echo
	@echo 'KUBE_VERSION=$(KUBE_VERSION) chooses the Kubernetes version; KUBEBUILDER_ASSETS=FOLDER uses binaries that are there already.'

build: ## Compile the operator: target/release/network-operator
	cargo build --release --locked --target-dir target

control-plane: ## Compile etcd, kube-apiserver and kube-controller-manager; the last line is their folder
	@tests/demo/control-plane.sh

demo: ## Watch a Network become its objects, on a real API server, and go again
	@tests/demo/demo.sh

dev: ## Control plane and operator in the foreground, to play with; Ctrl-C ends both
	@tests/demo/dev.sh

dev-start: ## The same in the background
	@tests/demo/dev.sh start

dev-stop: ## End what dev-start started
	@tests/demo/dev.sh stop

test: ## Run every check and test
	@tests/run.sh

rbac: ## Write the rights that the shipped rules need into kustomize/
	@cargo build --locked
	target/debug/network-operator rbac rules >kustomize/base/rbac.yaml
	@# The account is the base's; the Role for the Lease, too.
	target/debug/network-operator rbac --namespace network-operator --no-leader-election rules \
	  | sed '2,/^---$$/d' >kustomize/components/single-namespace/rbac.yaml
