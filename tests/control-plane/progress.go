package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// progress tells on stderr what a long build is doing. On a terminal it rewrites one line; anywhere else (CI logs, a file)
// it prints a plain line now and then, often enough that nobody takes the build for hung.
type progress struct {
	out      *os.File
	terminal bool
	every    time.Duration

	mu     sync.Mutex
	detail string
}

func newProgress() *progress {
	p := &progress{out: os.Stderr, every: 10 * time.Second}
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.terminal, p.every = true, time.Second
	}
	return p
}

// note prints a line for the person in front of it; stdout is for programs.
func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "control-plane: "+format+"\n", args...)
}

// say replaces what is shown beside the elapsed time of the step that is running.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detail = fmt.Sprintf(format, args...)
}

// step runs work under a title, and ticks until it is done.
func (p *progress) step(title string, work func() error) error {
	p.say("")
	start := time.Now()
	p.show(title, start, false)

	done := make(chan error, 1)
	go func() { done <- work() }()
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.show(title, start, false)
		case err := <-done:
			if err == nil {
				p.say("done")
			} else {
				p.say("failed")
			}
			p.show(title, start, true)
			return err
		}
	}
}

func (p *progress) show(title string, start time.Time, last bool) {
	p.mu.Lock()
	detail := p.detail
	p.mu.Unlock()
	line := fmt.Sprintf("control-plane: %s: %d s", title, int(time.Since(start).Seconds()))
	if detail != "" {
		line += ", " + detail
	}
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	if last {
		fmt.Fprintln(p.out)
	}
}
