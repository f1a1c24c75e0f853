package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// readyLimit is how long a component may take to become ready. Usually it is a second or two; on a machine that is
	// busy compiling it can be many times that, and waiting costs nothing.
	readyLimit = 2 * time.Minute
	// stopGrace is how long a component may take to end after SIGTERM. Open watches keep an API server from ending, and an
	// API server etcd, until they are killed; nothing is lost by that.
	stopGrace = 2 * time.Second
	// startAttempts is how often other ports are tried when somebody took one between choosing and using it.
	startAttempts = 5
)

// A cluster is one control plane: three processes, their ports, and their files in one folder.
type cluster struct {
	binaries string
	folder   *runFolder
	audit    bool
	port     int // that the API server must have; 0: any
	crds     []crdFile

	version   kubeVersion // of the API server that has been started
	member    string      // etcd's name for itself
	ports     map[component]int
	processes map[component]*process
	exits     chan *process // every process that ends

	credentials
}

func newCluster(binaries string, folder *runFolder, options upOptions) (*cluster, error) {
	credentials, err := newCredentials(folder)
	if err != nil {
		return nil, err
	}
	return &cluster{
		binaries: binaries, folder: folder, audit: options.audit, port: options.port, crds: options.crds,
		member: "etcd-" + newToken(), processes: map[component]*process{}, exits: make(chan *process, 16),
		credentials: credentials,
	}, folder.write("audit-policy.yaml", []byte(auditPolicy))
}

// start starts everything and returns when it is ready to be used.
func (c *cluster) start(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := c.startOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		c.stopAll()
		if attempt == startAttempts || !c.portTaken() {
			return err
		}
		// The next attempt begins with nothing, as the first one did: a CRD that is there already cannot be installed.
		if err := os.RemoveAll(c.folder.file("etcd")); err != nil {
			return err
		}
	}
}

func (c *cluster) startOnce(ctx context.Context) error {
	if err := c.choosePorts(); err != nil {
		return err
	}
	// After the ports are known, and again for each attempt: both files say where the API server is.
	if err := c.folder.write("kubeconfig", c.kubeconfig(c.server(), user{"admin", c.token}, user{"user", c.userToken})); err != nil {
		return err
	}
	if err := c.folder.write("controller-manager.kubeconfig", c.kubeconfig(c.server(), user{"controller-manager", c.managerToken})); err != nil {
		return err
	}
	for _, component := range components {
		os.Remove(c.logPath(component)) // of an earlier attempt: portTaken reads it
		if err := c.startComponent(ctx, component); err != nil {
			return err
		}
		if component == apiServer {
			if err := c.learnVersion(ctx); err != nil {
				return err
			}
			if err := c.installCRDs(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// startComponent starts one component and returns when it is ready.
func (c *cluster) startComponent(ctx context.Context, component component) error {
	if c.isRunning(component) {
		return fmt.Errorf("%s is running already", component)
	}
	process, err := startProcess(string(component), filepath.Join(c.binaries, string(component)), c.logPath(component), c.arguments(component))
	if err != nil {
		return err
	}
	c.processes[component] = process
	go func() {
		<-process.exited
		c.exits <- process
	}()
	if err := c.waitFor(ctx, process, string(component), c.readiness(component)); err != nil {
		process.stop(0) // also marks its end as known, should it have ended by itself
		return err
	}
	return nil
}

// stopComponent ends one component: politely, or as a crash would when grace is 0.
func (c *cluster) stopComponent(component component, grace time.Duration) error {
	if !c.isRunning(component) {
		return fmt.Errorf("%s is not running", component)
	}
	c.processes[component].stop(grace)
	return nil
}

// stopAll ends everything, clients before servers: an API server without its etcd would wait for it in vain.
func (c *cluster) stopAll() {
	for i := len(components) - 1; i >= 0; i-- {
		if c.isRunning(components[i]) {
			c.processes[components[i]].stop(stopGrace)
		}
	}
}

func (c *cluster) isRunning(component component) bool {
	process := c.processes[component]
	return process != nil && process.running()
}

// errNotReady: a component runs but cannot be used.
var errNotReady = fmt.Errorf("not ready after %v", readyLimit)

// waitFor returns when ready does no longer fail, with an error when a component ends or it takes too long.
func (c *cluster) waitFor(ctx context.Context, process *process, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, errNotReady)
	defer cancel()
	for {
		unready := ready(ctx)
		// Looked at even after a success: if the component has ended, somebody else answered on its port.
		if err := c.crashed(); err != nil {
			return err
		}
		if unready == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errNotReady) {
				return cause
			}
			return fmt.Errorf("%s is %w: %w\nlast lines of %s:\n%s", what, errNotReady, unready, process.logPath, tail(process.logPath, 15))
		case <-process.exited:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// crashed describes the first component that ended without being asked to.
func (c *cluster) crashed() error {
	for _, component := range components {
		if process := c.processes[component]; process != nil && !process.running() && !process.expected.Load() {
			return process.failure()
		}
	}
	return nil
}

func (c *cluster) etcd() string   { return fmt.Sprintf("http://127.0.0.1:%d", c.ports[etcd]) }
func (c *cluster) server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.ports[apiServer]) }

func (c *cluster) logPath(component component) string {
	return c.folder.file(string(component) + ".log")
}

// choosePorts picks a free loopback port for each component.
func (c *cluster) choosePorts() error {
	c.ports = map[component]int{}
	for _, component := range components {
		if component == apiServer && c.port != 0 {
			if !portFree(c.port) {
				return fmt.Errorf("port %d is in use\nstop what uses it, or choose another --port", c.port)
			}
			c.ports[component] = c.port
			continue
		}
		port, err := freePort()
		if err != nil {
			return err
		}
		c.ports[component] = port
	}
	return nil
}

// freePort picks a port below the range that Linux takes the local ports of outgoing connections from (32768–60999). The
// usual way, asking the kernel for port 0, gives one inside it: while a component is stopped, any connection of anybody
// could be given its port, even one that tries to reach the stopped component (which then connects to itself), and it
// could not be started again.
func freePort() (int, error) {
	for range 1000 {
		if port := 20000 + rand.IntN(12000); portFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port found between 20000 and 32000")
}

func portFree(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// portTaken tells whether a component failed because its port was no longer free.
func (c *cluster) portTaken() bool {
	for _, component := range components {
		if strings.Contains(tail(c.logPath(component), 50), "address already in use") {
			return true
		}
	}
	return false
}
