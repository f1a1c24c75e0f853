package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func shell(t *testing.T, script string) *process {
	t.Helper()
	p, err := startProcess("shell", "/bin/sh", filepath.Join(t.TempDir(), "log"), []string{"-c", script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(0) })
	return p
}

func TestAProcessThatIgnoresTheRequestToEndIsKilled(t *testing.T) {
	p := shell(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
	for start := time.Now(); !strings.Contains(tail(p.logPath, 1), "ready"); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("the shell does not start")
		}
	}
	p.stop(100 * time.Millisecond)
	if p.running() || !strings.Contains(p.state, "killed") {
		t.Errorf("state: %s", p.state)
	}
}

func TestACrashIsExplainedByTheLastLinesOfTheLog(t *testing.T) {
	p := shell(t, "for i in $(seq 100); do echo line $i; done; exit 3")
	<-p.exited
	message := p.failure().Error()
	if !strings.Contains(message, "exit status 3") || !strings.Contains(message, "  line 100") || strings.Contains(message, "line 50\n") {
		t.Errorf("got: %s", message)
	}
}

func TestTheTailOfAMissingLogSaysSo(t *testing.T) {
	if got := tail(filepath.Join(t.TempDir(), "none"), 5); !strings.Contains(got, os.ErrNotExist.Error()) && !strings.Contains(got, "no such file") {
		t.Errorf("got: %s", got)
	}
}
