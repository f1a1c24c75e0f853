package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makeExecutable puts a stand-in for a compiled binary at path.
func makeExecutable(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestComponentsAreChosenByName(t *testing.T) {
	if got, err := parseComponents(""); err != nil || !slices.Equal(got, components) {
		t.Errorf("none named: got %v, %v", got, err)
	}
	got, err := parseComponents("kube-apiserver, etcd,kube-apiserver")
	if err != nil || !slices.Equal(got, []component{apiServer, etcd}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseComponents("kubelet"); err == nil || !strings.Contains(err.Error(), "kube-controller-manager") {
		t.Errorf("want an error that lists what there is, got: %v", err)
	}
}

func TestOnlyFinishedBuildsCountAsCached(t *testing.T) {
	version, err := parseKubeVersion("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	b := builder{home: t.TempDir(), version: version}
	if got := b.missing(components); !slices.Equal(got, components) {
		t.Errorf("nothing is built, but missing is only: %v", got)
	}
	makeExecutable(t, b.binary(apiServer))
	makeExecutable(t, filepath.Join(b.folder(), ".kube-controller-manager.unfinished"))
	makeExecutable(t, b.sharedEtcd())
	if err := os.Link(b.sharedEtcd(), b.binary(etcd)); err != nil {
		t.Fatal(err)
	}
	if got := b.missing(components); !slices.Equal(got, []component{controllerManager}) {
		t.Errorf("got: %v", got)
	}
	if got := b.missing([]component{etcd}); len(got) > 0 {
		t.Errorf("asked for etcd alone, got: %v", got)
	}
}

func TestEtcdOfAnotherVersionIsReplaced(t *testing.T) {
	b := builder{home: t.TempDir(), version: kubeVersion{text: "v1.36.3"}}
	makeExecutable(t, b.binary(etcd)) // linked to bin/etcd-SOMETHING, which is not the version of now
	if got := b.missing([]component{etcd}); !slices.Equal(got, []component{etcd}) {
		t.Errorf("got: %v", got)
	}
}

func TestReadyBinariesAreUsedAsTheyAre(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	makeExecutable(t, filepath.Join(assets, "etcd"))
	_, err := binariesFor(t.Context(), t.TempDir(), "v1.36.3", components)
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver,kube-controller-manager") {
		t.Errorf("want an error that names what is missing, got: %v", err)
	}
	makeExecutable(t, filepath.Join(assets, "kube-apiserver"))
	makeExecutable(t, filepath.Join(assets, "kube-controller-manager"))
	if got, err := binariesFor(t.Context(), t.TempDir(), "v1.36.3", components); got != assets || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFoldersInTheOriginalGoModBecomePublishedModules(t *testing.T) {
	var original goMod
	err := json.Unmarshal([]byte(`{"Replace": [
		{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
		{"Old": {"Path": "github.com/pinned"}, "New": {"Path": "github.com/pinned", "Version": "v1.2.3"}}]}`), &original)
	if err != nil {
		t.Fatal(err)
	}
	got := original.edits("k8s.io/kubernetes", "v1.36.3", "v0.36.3")
	want := []string{
		"-module=control-plane-build",
		"-require=k8s.io/kubernetes@v1.36.3",
		"-dropreplace=k8s.io/api",
		"-replace=k8s.io/api=k8s.io/api@v0.36.3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got: %q", got)
	}
	// etcd's go.mod requires its siblings in the right version already: dropping the folder is enough.
	got = original.edits("go.etcd.io/etcd/server/v3", "v3.6.13", "")
	if !slices.Equal(got[2:], []string{"-dropreplace=k8s.io/api"}) {
		t.Errorf("got: %q", got)
	}
}

func TestLinesArriveWholeHoweverTheyAreWritten(t *testing.T) {
	var seen []string
	writer := lineWriter{line: func(line string) bool {
		seen = append(seen, line)
		return strings.Contains(line, " ")
	}}
	for _, part := range []string{"k8s.io/", "api\nmain.go:1:2: bad", " thing\ngone\nlast"} {
		writer.Write([]byte(part))
	}
	if !slices.Equal(seen, []string{"k8s.io/api", "main.go:1:2: bad thing", "gone"}) {
		t.Errorf("got: %q", seen)
	}
	if got := writer.kept(); got != "main.go:1:2: bad thing\nlast" {
		t.Errorf("kept: %q", got)
	}
}
