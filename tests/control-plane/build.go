package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A component is a program of the control plane.
type component string

const (
	etcd              component = "etcd"
	apiServer         component = "kube-apiserver"
	controllerManager component = "kube-controller-manager"
)

// components in the order in which they are compiled and started.
var components = []component{etcd, apiServer, controllerManager}

// runBuild is the `build` command.
func runBuild(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	version := flags.String("version", versionFlagDefault(), "Kubernetes version, default from KUBE_VERSION")
	wanted := flags.String("component", "", "only these, separated by commas (default all: "+joinComponents(components)+")")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	chosen, err := parseComponents(*wanted)
	if err != nil {
		return err
	}
	home, err := homeFolder()
	if err != nil {
		return err
	}
	if err := installSelf(home); err != nil {
		return err
	}
	binaries, err := binariesFor(ctx, home, *version, chosen)
	if err != nil {
		return err
	}
	fmt.Println(binaries)
	return nil
}

// binariesFor returns the folder with the binaries of a version, which it compiles if they are not there yet. A folder
// named by KUBEBUILDER_ASSETS is used as it is: the variable is a convention of Kubernetes projects for machines that have
// the binaries already.
func binariesFor(ctx context.Context, home, version string, wanted []component) (string, error) {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if missing := missingIn(assets, components); len(missing) > 0 {
			return "", fmt.Errorf("KUBEBUILDER_ASSETS: %s has no executable: %s\nput it there, or unset KUBEBUILDER_ASSETS to compile everything from source", assets, joinComponents(missing))
		}
		return filepath.Abs(assets)
	}
	parsed, err := parseKubeVersion(version)
	if err != nil {
		return "", err
	}
	b := builder{home: home, version: parsed, progress: newProgress()}
	return b.folder(), b.ensure(ctx, wanted)
}

// A builder compiles the components of one Kubernetes version. The layout of the cache:
//
//	bin/VERSION/COMPONENT         a finished build: only complete files ever have this name
//	bin/etcd-VERSION/etcd         linked into the folder of each Kubernetes version
//	bin/control-plane             this program
//	bin/.lock                     held while something is compiled
//	.build/MODULE-VERSION/        the generated modules (see module.go), while something is compiled
type builder struct {
	home     string
	version  kubeVersion
	progress *progress
}

func (b *builder) folder() string { return filepath.Join(b.home, "bin", b.version.text) }

// ensure compiles what is wanted and not cached.
func (b *builder) ensure(ctx context.Context, wanted []component) error {
	if len(b.missing(wanted)) == 0 {
		return nil // the usual case: neither a lock nor the network is touched
	}
	if err := os.MkdirAll(b.folder(), 0o755); err != nil {
		return err
	}
	// Concurrent builds would write to the same files.
	lock, err := waitForLock(ctx, filepath.Join(b.home, "bin", ".lock"), func(owner string) {
		note("waiting for another build (process %s)", owner)
	})
	if err != nil {
		return err
	}
	defer lock.release()

	missing := b.missing(wanted) // another process may have compiled them while this one waited for the lock
	for i, component := range missing {
		title := fmt.Sprintf("[%d/%d] compiling %s", i+1, len(missing), component)
		err := b.progress.step(title, func() error { return b.compile(ctx, component) })
		if err != nil {
			return err
		}
	}
	// What remains after a failure is worth a look; after a success it is only in the way of tools that walk the tree.
	return os.RemoveAll(b.workFolder())
}

func (b *builder) compile(ctx context.Context, component component) error {
	compiled := func(packages int) { b.progress.say("%d packages compiled", packages) }
	if component == etcd {
		return b.compileEtcd(ctx, compiled)
	}
	module := &buildModule{
		folder:  filepath.Join(b.workFolder(), "kubernetes-"+b.version.text),
		path:    "k8s.io/kubernetes",
		version: b.version.text,
		sibling: b.version.libraries(),
		newer:   quirksOf(b.version).newerDependencies,
	}
	if err := module.prepare(ctx); err != nil {
		return err
	}
	if quirksOf(b.version).generateOpenAPI {
		if err := generateOpenAPI(ctx, module, b.progress); err != nil {
			return err
		}
	}
	return module.compile(ctx, "k8s.io/kubernetes/cmd/"+string(component), b.version.linkerFlags(), b.binary(component), compiled)
}

func (b *builder) compileEtcd(ctx context.Context, compiled func(int)) error {
	shared := b.sharedEtcd()
	if !executable(shared) {
		module := &buildModule{
			folder:  filepath.Join(b.workFolder(), "etcd-"+etcdVersion),
			path:    "go.etcd.io/etcd/server/v3",
			version: etcdVersion,
		}
		if err := os.MkdirAll(filepath.Dir(shared), 0o755); err != nil {
			return err
		}
		if err := module.prepare(ctx); err != nil {
			return err
		}
		if err := module.compile(ctx, module.path, "-s -w", shared, compiled); err != nil {
			return err
		}
	}
	if err := os.Remove(b.binary(etcd)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Link(shared, b.binary(etcd))
}

func (b *builder) workFolder() string { return filepath.Join(b.home, ".build") }

func (b *builder) binary(component component) string {
	return filepath.Join(b.folder(), string(component))
}

func (b *builder) sharedEtcd() string {
	return filepath.Join(b.home, "bin", "etcd-"+etcdVersion, string(etcd))
}

// missing are the components that have to be compiled.
func (b *builder) missing(wanted []component) []component {
	missing := missingIn(b.folder(), wanted)
	if slices.Contains(wanted, etcd) && !slices.Contains(missing, etcd) && !sameFile(b.binary(etcd), b.sharedEtcd()) {
		missing = append([]component{etcd}, missing...) // linked by a version of this program that used another etcd
	}
	return missing
}

// installSelf puts this program into bin/control-plane, for those who start many control planes: `go run` costs time on each
// start, and is one more process between a caller and this one. `go run` has just compiled the sources as they are now, so
// a copy of the running executable is up to date by construction.
func installSelf(home string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Join(home, "bin")
	target := filepath.Join(bin, "control-plane")
	if sameFile(self, target) {
		return nil
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(bin, ".unfinished-") // a name of its own: two builds may run at once
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	copied := filepath.Join(unfinished, "control-plane")
	if err := copyFile(self, copied, 0o755); err != nil {
		return err
	}
	return os.Rename(copied, target)
}

// homeFolder is the folder with this program's source, which the cache lives in.
func homeFolder() (string, error) {
	var candidates []string
	if executable, err := os.Executable(); err == nil {
		candidates = append(candidates, filepath.Dir(filepath.Dir(executable))) // bin/control-plane
	}
	if here, err := os.Getwd(); err == nil {
		candidates = append(candidates, here) // go run .
	}
	for _, folder := range candidates {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module control-plane\n") {
			return folder, nil
		}
	}
	return "", errors.New("cannot find the folder of the control-plane module\nrun it there with `go run .`, or as bin/control-plane after `go run . build`")
}

func parseComponents(text string) ([]component, error) {
	if text == "" {
		return components, nil
	}
	var chosen []component
	for name := range strings.SplitSeq(text, ",") {
		c := component(strings.TrimSpace(name))
		if !slices.Contains(components, c) {
			return nil, fmt.Errorf("unknown component: %q\nknown are: %s", c, joinComponents(components))
		}
		if !slices.Contains(chosen, c) {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

func joinComponents(list []component) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = string(c)
	}
	return strings.Join(names, ",")
}

func missingIn(folder string, wanted []component) []component {
	var missing []component
	for _, component := range wanted {
		if !executable(filepath.Join(folder, string(component))) {
			missing = append(missing, component)
		}
	}
	return missing
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
