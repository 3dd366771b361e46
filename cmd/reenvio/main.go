// Command reenvio delivers events to webhooks through Kafka. Each stage of the pipeline is a subcommand of this one binary, next to
// commands for those who run it; `reenvio help` lists them.
//
// The package wires things together and talks to people. It refuses to know how anything works: what a command does is in the packages
// it calls.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/reenvio/reenvio/internal/process"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, soft := context.WithCancel(context.Background())
	go process.Stops(context.Background(), signals, soft, func(os.Signal) { os.Exit(exitFailed) })
	c := &cli{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(),
		terminal: process.IsTerminal(os.Stdin), renew: process.IsTerminal(os.Stderr),
	}
	os.Exit(run(ctx, c, os.Args[1:]))
}
