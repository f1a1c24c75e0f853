// Command control-plane gives tests, the demo and a developer a real Kubernetes API without a cluster, containers or root.
//
// Unit tests can pretend to be an API server only as well as their author knows it: server-side apply, admission, garbage
// collection and watches are exactly what a pretence gets wrong. So the end-to-end tests run against etcd, kube-apiserver
// and kube-controller-manager themselves. Nothing is downloaded ready-made: a Go toolchain and a Go module proxy are all it
// takes, which works the same on every architecture that Go compiles for.
//
// Where to read on: build.go (what is compiled and when it counts as cached), module.go (how a program is compiled out of
// somebody else's module), versions.go (everything in which Kubernetes versions differ); up.go (the life of one control
// plane), cluster.go (starting and stopping its components), arguments.go (their command lines), api.go (when they are
// ready), commands.go (what a test can ask for), process.go and folder.go (why nothing is left behind).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `Usage: control-plane COMMAND [FLAGS]

  build   compile etcd, kube-apiserver and kube-controller-manager, once per version;
          the last line on stdout is the folder they are in
  up      start them on free loopback ports and stay in the foreground;
          the first line on stdout is JSON that says where everything is

control-plane COMMAND -h lists the flags of a command.
`

func main() {
	// Ctrl-C, a closing terminal and a polite kill all mean the same: stop the children, remove the folder, leave.
	reasons := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup asks for
		reasons = append(reasons, syscall.SIGHUP)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), reasons...)
	defer cancel()

	err := run(ctx, os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "control-plane: %v\n\n%s", err, usage)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "control-plane: %v\n", err)
		os.Exit(1)
	}
}

// errUsage marks errors in how the program was called; they exit with 2 and show the usage.
var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no command given", errUsage)
	}
	command, args := args[0], args[1:]
	switch command {
	case "build":
		return runBuild(ctx, args)
	case "up":
		return runUp(ctx, args)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	default:
		return fmt.Errorf("%w: unknown command: %s", errUsage, command)
	}
}

// parseFlags parses args strictly: a stray word is more likely a forgotten dash than something to ignore.
func parseFlags(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		// The flag package has already printed the fault and the flags of this command.
		os.Exit(2)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument: %s", errUsage, strings.Join(flags.Args(), " "))
	}
	return nil
}
