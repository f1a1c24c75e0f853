package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Nothing may outlive this program, not even when it is killed -9 and cannot clean up. On Linux the kernel sees to that: a
// child can ask to be killed when its parent dies (see children_linux.go). «Parent» there means the OS thread that forked,
// and Go ends threads as it likes, so every child is started from one goroutine that keeps its thread for good.
var onForkThread = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range onForkThread {
			start()
		}
	}()
}

// startChild starts cmd so that it dies with this program.
func startChild(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr)
	result := make(chan error)
	onForkThread <- func() { result <- cmd.Start() }
	return <-result
}

// A process is one running instance of a component.
type process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	// exited is closed when the process has ended; state is valid from then on.
	exited chan struct{}
	state  string
	// expected is set before the process is asked to end, so that its end is not reported as a crash.
	expected atomic.Bool
}

// startProcess runs a binary in the background, its output appended to logPath.
func startProcess(name, binary, logPath string, args []string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy

	p := &process{name: name, logPath: logPath, cmd: exec.Command(binary, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A process group of its own keeps a Ctrl-C in the terminal from reaching the child before this program can stop the
	// components in the right order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := startChild(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.cmd.Wait() // its error says less than the state
		p.state = p.cmd.ProcessState.String()
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop asks the process to end, kills it if it has not after the grace period, and returns when it is gone.
func (p *process) stop(grace time.Duration) {
	p.expected.Store(true)
	if grace > 0 {
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
			return
		case <-time.After(grace):
		}
	}
	p.cmd.Process.Kill()
	<-p.exited
}

// failure describes the unexpected end of the process with what it said last.
func (p *process) failure() error {
	return fmt.Errorf("%s ended unexpectedly: %s\nlast lines of %s:\n%s", p.name, p.state, p.logPath, tail(p.logPath, 15))
}

// tail returns the last lines of a file, indented to be told apart from the message around it.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	text = bytes.TrimRight(text, "\n")
	all := strings.Split(string(text), "\n")
	all = all[max(0, len(all)-lines):]
	return "  " + strings.Join(all, "\n  ")
}
