package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

const (
	// defaultKubeVersion is what is built when neither --version nor KUBE_VERSION asks for another.
	defaultKubeVersion = "v1.36.3"
	// etcdVersion serves every Kubernetes version that this program builds: the API server speaks etcd's v3 protocol,
	// which has not changed between them, and one etcd is one thing less to compile.
	etcdVersion = "v3.6.13"
)

// kubeVersion is a Kubernetes release such as v1.36.3 or v1.37.0-rc.1.
type kubeVersion struct {
	text         string
	major, minor int
	rest         string
}

var versionPattern = regexp.MustCompile(`^v(1)\.(\d+)\.(\d+(?:-(?:alpha|beta|rc)\.\d+)?)$`)

func parseKubeVersion(text string) (kubeVersion, error) {
	match := versionPattern.FindStringSubmatch(text)
	if match == nil {
		return kubeVersion{}, fmt.Errorf("not a Kubernetes version: %q\nwrite it as the releases are named, for example: %s", text, defaultKubeVersion)
	}
	major, _ := strconv.Atoi(match[1])
	minor, err := strconv.Atoi(match[2])
	if err != nil {
		return kubeVersion{}, fmt.Errorf("not a Kubernetes version: %q: %w", text, err)
	}
	return kubeVersion{text: text, major: major, minor: minor, rest: match[3]}, nil
}

func (v kubeVersion) String() string { return v.text }

// libraries is the version under which this release publishes its libraries (k8s.io/api and so on): v1.36.3 → v0.36.3.
func (v kubeVersion) libraries() string { return fmt.Sprintf("v0.%d.%s", v.minor, v.rest) }

// versionFlagDefault is the version to use when no flag names one.
func versionFlagDefault() string {
	if version := os.Getenv("KUBE_VERSION"); version != "" {
		return version
	}
	return defaultKubeVersion
}

// quirks are the only differences between Kubernetes versions that this program knows. A new one belongs here and nowhere
// else: a field with a reason, and the versions it applies to in quirksOf.
type quirks struct {
	// generateOpenAPI: the module as published does not compile, because the generated OpenAPI package is not part of it.
	generateOpenAPI bool
	// newerDependencies replace what Kubernetes was released with, where that does not work with today's Go.
	newerDependencies map[string]string
	// versionPackages hold the variables that say which version a binary is. Built without them, a server claims to be
	// v0.0.0-master, which kubectl and client libraries cannot parse.
	versionPackages []string
	// managerArguments are further arguments of kube-controller-manager.
	managerArguments []string
}

func quirksOf(v kubeVersion) quirks {
	q := quirks{
		versionPackages: []string{"k8s.io/component-base/version"},
	}
	if v.minor < 24 {
		q.generateOpenAPI = true
		// v1.0.1 reads Go's maps in the layout that they had before Go 1.18; with it, the server panics on each write of a
		// custom resource.
		q.newerDependencies = map[string]string{"github.com/modern-go/reflect2": "v1.0.2"}
		// It also listens on port 10252, without TLS and always: two control planes could not run side by side.
		q.managerArguments = []string{"--port=0"}
		q.versionPackages = append(q.versionPackages, "k8s.io/client-go/pkg/version")
	}
	return q
}

// linkerFlags make a binary small and let it know its version.
func (v kubeVersion) linkerFlags() string {
	flags := "-s -w"
	for _, pkg := range quirksOf(v).versionPackages {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]d -X %[1]s.gitMinor=%[4]d", pkg, v, v.major, v.minor)
	}
	return flags
}
