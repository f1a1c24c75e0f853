package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A started program is this one, in a process of its own, as a test of the operator would start it.
type startedProgram struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
	// from its announcement
	Dir, Kubeconfig, Server, CA, Token, Version, Etcd string
	Audit                                             *string
	Pids                                              map[string]int
}

// startProgram starts a control plane. Tests that need one are skipped where none has been built: building takes minutes,
// which is not what somebody who runs unit tests expects.
func startProgram(t *testing.T, args ...string) *startedProgram {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	home, err := homeFolder()
	if err != nil {
		t.Fatal(err)
	}
	if missing := missingIn(filepath.Join(home, "bin", versionFlagDefault()), components); len(missing) > 0 {
		t.Skipf("needs: go run . build (missing: %s)", joinComponents(missing))
	}
	p := &startedProgram{command: exec.Command(os.Args[0], append([]string{"up"}, args...)...)}
	p.command.Env = append(os.Environ(), actAs+"=program", "KUBEBUILDER_ASSETS=")
	p.command.Stderr = os.Stderr
	if p.input, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.output = bufio.NewReader(output)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.command.Process.Kill()
		p.command.Wait()
	})
	line, err := p.output.ReadString('\n')
	if err != nil {
		t.Fatalf("not announced: %v", err)
	}
	if err := json.Unmarshal([]byte(line), p); err != nil {
		t.Fatalf("%v in: %s", err, line)
	}
	return p
}

func (p *startedProgram) ask(t *testing.T, line string) (answer struct {
	Done, Failed, Error string
	Pids                map[string]int
}) {
	t.Helper()
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		t.Fatal(err)
	}
	text, err := p.output.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v in: %s", err, text)
	}
	return answer
}

func TestAControlPlaneStartsRestartsAndCleansUpWhenItsInputEnds(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := startProgram(t, "--audit")
	if p.Version != versionFlagDefault() || p.Audit == nil || len(p.Pids) != 4 {
		t.Errorf("announced: %+v", p)
	}
	if answer := p.ask(t, "restart kube-apiserver"); answer.Done != "restart kube-apiserver" || answer.Pids["kube-apiserver"] == p.Pids["kube-apiserver"] {
		t.Errorf("got: %+v", answer)
	}
	if answer := p.ask(t, "kill etcd"); answer.Done != "kill etcd" || answer.Pids["etcd"] != 0 {
		t.Errorf("got: %+v", answer)
	}
	if answer := p.ask(t, "kill etcd"); answer.Failed != "kill etcd" || answer.Error != "etcd is not running" {
		t.Errorf("got: %+v", answer)
	}
	last := p.ask(t, "start etcd")
	if last.Done != "start etcd" || last.Pids["etcd"] == 0 {
		t.Errorf("got: %+v", last)
	}
	if log, err := os.ReadFile(*p.Audit); err != nil || !strings.Contains(string(log), `"objectRef"`) {
		t.Errorf("audit log: %v", err)
	}

	p.input.Close()
	if err := p.command.Wait(); err != nil {
		t.Errorf("ended with: %v", err)
	}
	if exists(p.Dir) {
		t.Errorf("%s is still there", p.Dir)
	}
	for name, pid := range last.Pids {
		if alive(pid) {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestNothingOutlivesAControlPlaneThatIsKilled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := startProgram(t)
	p.command.Process.Kill()
	p.command.Wait()
	for _, pid := range p.Pids {
		awaitDeath(t, pid)
	}
	removeLeftovers(os.TempDir())
	if exists(p.Dir) {
		t.Errorf("%s is still there", p.Dir)
	}
}

func TestACrashOfAComponentEndsEverythingWithAnExplanation(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := startProgram(t)
	victim, err := os.FindProcess(p.Pids["kube-controller-manager"])
	if err != nil {
		t.Fatal(err)
	}
	victim.Kill()
	if err := p.command.Wait(); err == nil || p.command.ProcessState.ExitCode() != 1 {
		t.Errorf("ended with: %v", err)
	}
	if exists(p.Dir) {
		t.Errorf("%s is still there", p.Dir)
	}
}
