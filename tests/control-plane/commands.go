package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// errInputClosed is why most control planes stop: whoever started it has gone, or wants it to go.
var errInputClosed = errors.New("standard input was closed (--no-stdin: stay all the same)")

// readCommands delivers the lines of input, and ends ctx when there are no more.
func readCommands(ctx context.Context, input io.Reader) (context.Context, <-chan string) {
	ctx, cancel := context.WithCancelCause(ctx)
	lines := make(chan string)
	go func() {
		scanner := bufio.NewScanner(input)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		cancel(errInputClosed)
	}()
	return ctx, lines
}

// A command is what a test can ask for, to see how its subject takes it.
type command struct {
	verb      string
	component component
}

var verbs = []string{"start", "stop", "kill", "restart"}

func parseCommand(line string) (command, error) {
	words := strings.Fields(line)
	if len(words) == 2 && slices.Contains(verbs, words[0]) && slices.Contains(components, component(words[1])) {
		return command{words[0], component(words[1])}, nil
	}
	return command{}, fmt.Errorf("unknown command: %q\nwrite one of %s and one of %s", line, strings.Join(verbs, ","), joinComponents(components))
}

// obey does what a line asks for and answers with one line of JSON. An error is an answer too; only when nobody can be
// answered is it returned.
func (c *cluster) obey(ctx context.Context, line string) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	answer := struct {
		Done   string         `json:"done,omitempty"`
		Failed string         `json:"failed,omitempty"`
		Error  string         `json:"error,omitempty"`
		Pids   map[string]int `json:"pids"`
	}{Done: line}
	if err := c.execute(ctx, line); err != nil {
		if ctx.Err() != nil {
			return nil // on the way out
		}
		answer.Done, answer.Failed, answer.Error = "", line, err.Error()
	}
	answer.Pids = c.pids()
	return json.NewEncoder(os.Stdout).Encode(answer)
}

// execute returns when the component is ready (start, restart) or gone (stop, kill). A component keeps its port and data.
func (c *cluster) execute(ctx context.Context, line string) error {
	command, err := parseCommand(line)
	if err != nil {
		return err
	}
	switch command.verb {
	case "stop":
		return c.stopComponent(command.component, stopGrace)
	case "kill":
		return c.stopComponent(command.component, 0)
	case "restart":
		if err := c.stopComponent(command.component, stopGrace); err != nil {
			return err
		}
	}
	return c.startComponent(ctx, command.component)
}
