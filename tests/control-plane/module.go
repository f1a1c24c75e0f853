package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A buildModule is a Go module that is generated to compile programs out of somebody else's module. `go install
// MODULE/cmd@VERSION` would be simpler, but refuses modules whose go.mod has replace directives, and both Kubernetes and
// etcd have: they point at sibling folders of the original repository, which are published as modules of their own.
//
// The generated go.mod is the original one with those replaced by the published siblings, and with the original go.sum
// beside it, so every dependency has exactly the version and content that the authors built and tested with. What their
// go.sum lacks (the siblings) is checked by Go against the checksum database, as for any module.
type buildModule struct {
	folder  string // where it is generated
	path    string // the module that is compiled, for example k8s.io/kubernetes
	version string
	// sibling is the version under which the modules in sibling folders are published.
	sibling string
	// newer are dependencies to take in another version than the module asks for.
	newer  map[string]string
	source string // folder with the module's source, known after prepare
}

// prepare downloads the module and writes go.mod and go.sum.
func (m *buildModule) prepare(ctx context.Context) error {
	if err := os.MkdirAll(m.folder, 0o755); err != nil {
		return err
	}
	// A minimal go.mod first: without one, the go command would find, and edit, that of this program in a parent folder.
	if err := os.WriteFile(m.file("go.mod"), []byte("module control-plane-build\n"), 0o644); err != nil {
		return err
	}
	var download struct{ Dir, GoMod, Error string }
	output, err := m.goCommand(ctx, "mod", "download", "-json", m.path+"@"+m.version)
	if jsonErr := json.Unmarshal(output, &download); jsonErr == nil && download.Error != "" {
		return fmt.Errorf("download %s@%s: %s\nis the version right, and are the Go module proxy and the checksum database reachable (`go env GOPROXY GOSUMDB`)?", m.path, m.version, download.Error)
	}
	if err != nil {
		return fmt.Errorf("download %s@%s: %w", m.path, m.version, err)
	}
	m.source = download.Dir

	if err := copyFile(download.GoMod, m.file("go.mod"), 0o644); err != nil {
		return err
	}
	err = copyFile(filepath.Join(m.source, "go.sum"), m.file("go.sum"), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	output, err = m.goCommand(ctx, "mod", "edit", "-json", "go.mod")
	if err != nil {
		return err
	}
	var original goMod
	if err := json.Unmarshal(output, &original); err != nil {
		return fmt.Errorf("read go.mod of %s@%s: %w", m.path, m.version, err)
	}
	edits := original.edits(m.path, m.version, m.sibling)
	for path, version := range m.newer {
		edits = append(edits, "-replace="+path+"="+path+"@"+version)
	}
	return m.edit(ctx, edits...)
}

// edit changes the generated go.mod.
func (m *buildModule) edit(ctx context.Context, edits ...string) error {
	_, err := m.goCommand(ctx, append(append([]string{"mod", "edit"}, edits...), "go.mod")...)
	return err
}

// goMod is the part of `go mod edit -json` that matters here.
type goMod struct {
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// edits are the `go mod edit` flags that turn the original go.mod of a module into one that compiles it.
func (original goMod) edits(path, version, sibling string) []string {
	edits := []string{"-module=control-plane-build", "-require=" + path + "@" + version}
	for _, replace := range original.Replace {
		if replace.New.Version != "" {
			continue // a pinned version, not a folder: part of what the authors tested
		}
		edits = append(edits, "-dropreplace="+replace.Old.Path)
		if sibling != "" {
			edits = append(edits, fmt.Sprintf("-replace=%[1]s=%[1]s@%[2]s", replace.Old.Path, sibling))
		}
	}
	return edits
}

// compile builds one program of the module. Half a build never has the final name: the linker writes to another one.
func (m *buildModule) compile(ctx context.Context, pkg, linkerFlags, target string, compiled func(packages int)) error {
	unfinished := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".unfinished")
	defer os.Remove(unfinished)

	packages := 0
	watch := &lineWriter{line: func(line string) bool {
		// With -v the go command prints the import path of each package that it compiles. They and the downloads are
		// progress; the rest is what to show when it fails.
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			return false
		case strings.ContainsAny(line, " \t"):
			return true
		}
		packages++
		compiled(packages)
		return false
	}}
	command := m.command(ctx, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", linkerFlags, "-o", unfinished, pkg)
	command.Stderr = watch
	if err := runChild(ctx, command); err != nil {
		return fmt.Errorf("compile %s@%s: %w\n%s", pkg, m.version, err, watch.kept())
	}
	return os.Rename(unfinished, target)
}

// goCommand runs the go command in the module and returns its stdout.
func (m *buildModule) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	command := m.command(ctx, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := runChild(ctx, command); err != nil {
		return stdout.Bytes(), fmt.Errorf("`go %s`: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}

func (m *buildModule) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.Command("go", args...)
	command.Dir = m.folder
	// Static binaries run on any Linux, and need no C compiler here. A go.work around this repository is not meant for
	// Kubernetes. -mod=mod lets Go add the checksums of the siblings to the generated go.sum.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	return command
}

func (m *buildModule) file(name string) string { return filepath.Join(m.folder, name) }

// runChild runs a command to its end; it dies with this program, and when ctx is done.
func runChild(ctx context.Context, command *exec.Cmd) error {
	if errors.Is(command.Err, exec.ErrNotFound) {
		return fmt.Errorf("%w\ninstall Go (https://go.dev/doc/install), or point KUBEBUILDER_ASSETS at ready binaries", command.Err)
	}
	if err := startChild(command); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { command.Process.Kill() })
	defer stop()
	err := command.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// lineWriter hands over each line that is written to it, and keeps those for which line returns true.
type lineWriter struct {
	line    func(string) (keep bool)
	partial []byte
	lines   []string
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.partial = append(w.partial, text...)
	for {
		end := bytes.IndexByte(w.partial, '\n')
		if end < 0 {
			return len(text), nil
		}
		line := string(w.partial[:end])
		w.partial = w.partial[end+1:]
		if w.line(line) {
			w.lines = append(w.lines, line)
		}
	}
}

func (w *lineWriter) kept() string {
	return strings.Join(append(w.lines, string(w.partial)), "\n")
}

func copyFile(from, to string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, mode)
}
