package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// confirm asks a person before something is destroyed or sent. A script has nobody to ask and must say --yes.
func (c *cli) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !c.terminal {
		return usagef("%s There is no terminal to ask on: pass --yes to go ahead", question)
	}
	fmt.Fprintf(c.stderr, "%s [y/N] ", question)
	line, err := interruptible(ctx, func() (string, error) { return bufio.NewReader(c.stdin).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	fmt.Fprintln(c.stderr, "Nothing was done.")
	return errNotDone
}

// content reads an argument that may be text, @FILE, or - for standard input.
func (c *cli) content(ctx context.Context, flag, arg string) ([]byte, error) {
	switch file, isFile := strings.CutPrefix(arg, "@"); {
	case arg == "-":
		data, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(c.stdin) })
		if err != nil {
			return nil, fmt.Errorf("reading %s from standard input: %w", flag, err)
		}
		return data, nil
	case isFile:
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("reading %s: %w", flag, err)
		}
		return data, nil
	default:
		return []byte(arg), nil
	}
}

// interruptible lets a person end a read from a terminal, which has no deadline of its own.
func interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := read()
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}
