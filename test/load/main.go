// Command load measures the program: it starts the real server on folders of
// its own, sends prepared requests from this machine and reports medians
// beside baselines of the same run. It owns no figure of the product and is no
// part of it.
//
//	go run ./test/load -out docs/benchmarks.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

// settings are the command line.
type settings struct {
	server, dir, only, out string
	runs                   int
	scale                  float64
	full                   bool
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == acceptCommand {
		fail(accept())
		return
	}
	var s settings
	flag.StringVar(&s.server, "server", "", "the program to measure; built from ./cmd/actionpulse if empty")
	flag.StringVar(&s.dir, "dir", "", "where to make the data folders; the default for temporary files if empty")
	flag.StringVar(&s.only, "only", ".", "measure only what matches: batches, single, repeat, markers, movements, executions, visible, claims, start, queries, large")
	flag.StringVar(&s.out, "out", "", "Markdown file to write the report to; standard output if empty")
	flag.IntVar(&s.runs, "runs", 5, "runs of each measurement")
	flag.Float64Var(&s.scale, "scale", 1, "share of the amounts, for a trial")
	flag.BoolVar(&s.full, "full", false, "also on a folder of 20 million ids and 1 GiB; takes about half an hour")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fail(run(ctx, s))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	only, err := regexp.Compile(s.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp(s.dir, "actionpulse-load-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	b := &bench{binary: s.server, dir: dir, runs: s.runs, scale: s.scale, full: s.full, log: os.Stderr}
	err = b.measure(ctx, only)
	if err == nil {
		err = b.write(ctx, s.out)
	}
	if err != nil {
		// The server's log tells more.
		return fmt.Errorf("%w (the folders are left in %s)", err, dir)
	}
	return os.RemoveAll(dir)
}

func (b *bench) measure(ctx context.Context, only *regexp.Regexp) error {
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "actionpulse")
		b.say("building the server")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.binary, "./cmd/actionpulse")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build: %w", err)
		}
	}
	for _, m := range measurements {
		if !only.MatchString(m.name) {
			continue
		}
		b.say("%s", m.name)
		if err := m.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if len(b.rows) == 0 {
		return errors.New("nothing was measured")
	}
	return nil
}

func (b *bench) write(ctx context.Context, path string) error {
	report, err := b.report(ctx)
	if err != nil {
		return err
	}
	if path == "" {
		_, err = os.Stdout.Write(report)
		return err
	}
	return os.WriteFile(path, report, 0o644)
}
