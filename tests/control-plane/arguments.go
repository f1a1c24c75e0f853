package main

import "fmt"

// auditPolicy records who did what to which object, without bodies. A request is recorded once, when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// arguments is the command line of a component. Only what differs from the defaults is given, so that the tests see a
// server that behaves like everybody's.
func (c *cluster) arguments(component component) []string {
	switch component {
	case etcd:
		return c.etcdArguments()
	case apiServer:
		return c.apiServerArguments()
	default:
		return c.controllerManagerArguments()
	}
}

func (c *cluster) etcdArguments() []string {
	// There are no peers, but etcd listens for them; on port 0 it needs no port of ours.
	const peers = "http://127.0.0.1:0"
	return []string{
		"--name=" + c.member,
		"--data-dir=" + c.folder.file("etcd"),
		"--listen-client-urls=" + c.etcd(),
		"--advertise-client-urls=" + c.etcd(),
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=" + c.member + "=" + peers,
		// The only member elects itself; by default it takes up to a second to find out that there is nobody else.
		"--heartbeat-interval=20",
		"--election-timeout=200",
		"--unsafe-no-fsync", // the data need not survive a power cut, and tests write a lot
		"--log-level=warn",
	}
}

func (c *cluster) apiServerArguments() []string {
	arguments := []string{
		"--etcd-servers=" + c.etcd(),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports[apiServer]),
		// The Service `kubernetes` gets no endpoints: nothing runs in this cluster, so nobody could connect to them. The
		// address (reserved for documentation) is required all the same: without one the server looks for a default
		// route and refuses to start on a machine that has none.
		"--advertise-address=192.0.2.1",
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + c.folder.file("certificates"),
		"--tls-cert-file=" + c.folder.file("kube-apiserver.crt"),
		"--tls-private-key-file=" + c.folder.file("kube-apiserver.key"),
		"--token-auth-file=" + c.folder.file("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.folder.file("service-account.key"),
		"--service-account-signing-key-file=" + c.folder.file("service-account.key"),
		"--service-cluster-ip-range=10.0.0.0/16",
		// Off by default, but on in stricter clusters (OpenShift for one), where an operator needs more rights to set
		// owner references. What works with it works everywhere.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
	}
	if c.audit {
		arguments = append(arguments,
			"--audit-policy-file="+c.folder.file("audit-policy.yaml"),
			"--audit-log-path="+c.auditLog(),
			"--audit-log-maxsize=100000", // megabytes: a log that is rotated in the middle of a test is hard to read
		)
	}
	return arguments
}

func (c *cluster) controllerManagerArguments() []string {
	arguments := []string{
		"--kubeconfig=" + c.folder.file("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports[controllerManager]),
		"--tls-cert-file=" + c.folder.file("kube-controller-manager.crt"),
		"--tls-private-key-file=" + c.folder.file("kube-controller-manager.key"),
		// No --controllers: the default is all, those for clouds are skipped without one, and their names, which a list of
		// exceptions would need, change between versions.
		// Each controller acts as the service account, and with the RBAC rules, that it has in a real cluster.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.folder.file("service-account.key"),
		"--root-ca-file=" + c.folder.file("ca.crt"),
		"--leader-elect=false", // there is no second one, and a restart would wait for the lease of the first
		// The garbage collector's speed is that of its requests: 20 a second by default, too slow for tests that delete
		// hundreds of objects and wait.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--concurrent-gc-syncs=40",
	}
	return append(arguments, quirksOf(c.version).managerArguments...)
}

func (c *cluster) auditLog() string { return c.folder.file("audit.log") }
