package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit statuses of every command.
const (
	exitOK     = 0
	exitFailed = 1 // it failed, or is not done yet
	exitUsage  = 2 // what was asked for can't be meant: unknown flag or command, bad argument, bad configuration
)

// cli is what a command has of the world outside.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	terminal       bool // a person sits at stdin and can be asked
	renew          bool // stderr is a terminal, on which a line can be written over
	configFile     string
}

// usageError is a mistake of the person who typed the command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errNotDone ends a command with status 1 when all there is to say has been said.
var errNotDone = errors.New("not done")

// run executes one command line and returns its exit status.
func run(ctx context.Context, c *cli, args []string) int {
	root := newRoot(c)
	began := watchStart(root)
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	cmd, err := root.ExecuteContextC(ctx)
	usage := usageError{}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNotDone):
		return exitFailed
	case errors.As(err, &usage), !*began: // before a command begins, all that can go wrong is what was typed
		fmt.Fprintf(c.stderr, "reenvio: %v\nSee `%s --help`.\n", err, cmd.CommandPath())
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(c.stderr, "reenvio: interrupted")
		return exitFailed
	default:
		fmt.Fprintf(c.stderr, "reenvio: %v\n", err)
		return exitFailed
	}
}

// watchStart notes when a command's own code begins to run. Cobra has no error types: what it returns earlier is about flags,
// arguments and command names.
func watchStart(root *cobra.Command) *bool {
	began := new(bool)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if inner := cmd.RunE; inner != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				*began = true
				return inner(cmd, args)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return began
}
