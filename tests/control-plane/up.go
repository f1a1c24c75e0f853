package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type upOptions struct {
	version string
	dir     string
	audit   bool
	port    int
	keep    bool
	noStdin bool
	crds    []crdFile
}

// runUp is the `up` command: it starts a control plane, announces it on stdout, and stays until it is told to go, its
// standard input ends, or a component crashes.
//
// Standard input is what ties its life to that of a test. The other end of the pipe closes whatever happens to the test: it
// returns, panics, is interrupted, or is killed so that no destructor runs.
func runUp(ctx context.Context, args []string) (err error) {
	var options upOptions
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.StringVar(&options.version, "version", versionFlagDefault(), "Kubernetes version, default from KUBE_VERSION; compiled first if need be")
	flags.StringVar(&options.dir, "dir", "", "folder for data, logs and keys (default a new one for temporary files)")
	flags.BoolVar(&options.audit, "audit", false, "record every request in audit.log in that folder")
	flags.Func("crd", "`file` with a CustomResourceDefinition to install; may be repeated", func(path string) error {
		content, err := os.ReadFile(path)
		options.crds = append(options.crds, crdFile{path, content})
		return err
	})
	flags.IntVar(&options.port, "port", 0, "port of the API server (default any free one)")
	flags.BoolVar(&options.keep, "keep", false, "do not remove the folder at the end")
	flags.BoolVar(&options.noStdin, "no-stdin", false, "do not stop when standard input ends; for use by hand or in the background")
	if err := parseFlags(flags, args); err != nil {
		return err
	}

	// A caller that is gone reads no more answers. That must not kill this program before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	var commands <-chan string
	if !options.noStdin {
		ctx, commands = readCommands(ctx, os.Stdin)
	}

	home, err := homeFolder()
	if err != nil && os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return err
	}
	binaries, err := binariesFor(ctx, home, options.version, components)
	if err != nil {
		return err
	}

	began := time.Now()
	folder, err := newRunFolder(options.dir, options.keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.close()) }()
	c, err := newCluster(binaries, folder, options)
	if err != nil {
		return err
	}
	defer c.stopAll()
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	version, err := c.serverVersion(ctx)
	if err != nil {
		return err
	}
	if err := c.announce(version); err != nil {
		return err
	}
	note("%s is ready after %.1f s: %s", version, time.Since(began).Seconds(), c.server())

	return c.serve(ctx, commands)
}

// announce prints the line that says where everything is.
func (c *cluster) announce(version string) error {
	announcement := struct {
		Dir        string         `json:"dir"`
		Kubeconfig string         `json:"kubeconfig"`
		Server     string         `json:"server"`
		CA         string         `json:"ca"`
		Token      string         `json:"token"`
		UserToken  string         `json:"userToken"`
		Audit      *string        `json:"audit"`
		Version    string         `json:"version"`
		Pids       map[string]int `json:"pids"`
		Etcd       string         `json:"etcd"`
	}{
		Dir: c.folder.path, Kubeconfig: c.folder.file("kubeconfig"), Server: c.server(), CA: c.folder.file("ca.crt"),
		Token: c.token, UserToken: c.userToken, Version: version, Pids: c.pids(), Etcd: c.etcd(),
	}
	if c.audit {
		log := c.auditLog()
		announcement.Audit = &log
	}
	return json.NewEncoder(os.Stdout).Encode(announcement)
}

// pids are the process ids of what is running, for tests that want to see something die.
func (c *cluster) pids() map[string]int {
	pids := map[string]int{"control-plane": os.Getpid()}
	for _, component := range components {
		if c.isRunning(component) {
			pids[string(component)] = c.processes[component].pid()
		}
	}
	return pids
}

// serve stays until there is a reason to go: a signal, the end of standard input (both end ctx), or a crash, which is the
// only one that is an error.
func (c *cluster) serve(ctx context.Context, commands <-chan string) error {
	for {
		select {
		case <-ctx.Done():
			note("stopping: %v", context.Cause(ctx))
			return nil
		case process := <-c.exits:
			if !process.expected.Load() {
				return process.failure()
			}
		case line := <-commands:
			if err := c.obey(ctx, line); err != nil {
				return err
			}
		}
	}
}
