package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func init() { actors["parent"] = parentOfSleep }

// parentOfSleep is what the test below kills. It ends OS threads on the way, as busy Go programs do.
func parentOfSleep() {
	p, err := startProcess("sleep", "sleep", os.DevNull, []string{"300"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for range 20 {
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			close(done)
		}()
		<-done
	}
	time.Sleep(200 * time.Millisecond)
	fmt.Println(p.pid())
	select {}
}

func TestChildrenDieWithAProgramThatIsKilled(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), actAs+"=parent")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	if !alive(child) {
		t.Fatal("the child died with a thread of its parent")
	}
	parent.Process.Kill()
	parent.Wait()
	awaitDeath(t, child)
}

// awaitDeath fails the test if a process does not end soon.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	for start := time.Now(); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 5*time.Second {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// alive tells whether a process runs. One that has ended but was not waited for does not count: who does that is up to the
// init process, which inside some sandboxes takes its time.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
