package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// bench runs the measurements and collects the lines of the report.
type bench struct {
	binary string
	// dir holds the data folders, each removed by hand or with dir.
	dir  string
	runs int
	// scale multiplies the amounts.
	scale float64
	// full measures on the large folder too.
	full bool
	log  io.Writer
	rows []row
	// seed is raised with every use, so that no two runs share an id.
	seed    uint64
	folders int
	// postgres is where servers keep their accounts; a file in the folder if
	// it is empty.
	postgres string
}

// measurement is one part of the report.
type measurement struct {
	name string
	run  func(*bench, context.Context) error
}

// measurements in the order in which they are made: those that need the
// machine quiet come first.
var measurements = []measurement{
	{"batches", (*bench).measureBatches},
	{"single", (*bench).measureSingle},
	{"repeat", (*bench).measureRepeat},
	{"markers", (*bench).measureMarkers},
	{"movements", (*bench).measureMovements},
	{"executions", (*bench).measureExecutions},
	{"visible", (*bench).measureVisible},
	{"claims", (*bench).measureClaims},
	{"start", (*bench).measureStart},
	{"queries", (*bench).measureQueries},
	{"large", (*bench).measureLarge},
}

func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	b.say("  %s: %s | cpu %s | baseline %s | met %s", r.what, r.measured, r.cpu, r.baseline, r.met)
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.log, format+"\n", args...) //nolint:errcheck // progress on a terminal
}

// scaled returns a share of an amount.
func (b *bench) scaled(n int) int { return max(int(float64(n)*b.scale), 1) }

func (b *bench) nextSeed() uint64 {
	b.seed++
	return b.seed
}

// fresh starts a server on an empty folder.
func (b *bench) fresh(ctx context.Context) (*server, error) {
	b.folders++
	if b.postgres != "" {
		address, err := newDatabase(ctx, b.postgres, fmt.Sprintf("load_%d", b.folders))
		if err != nil {
			return nil, err
		}
		if err := os.Setenv(databaseVariable, address); err != nil {
			return nil, fmt.Errorf("name the database: %w", err)
		}
	}
	return newServer(ctx, b.binary, filepath.Join(b.dir, fmt.Sprintf("data-%02d", b.folders)))
}

// with runs a measurement on a server of its own.
func (b *bench) with(ctx context.Context, measure func(*server) error) error {
	s, err := b.fresh(ctx)
	if err != nil {
		return err
	}
	if err := measure(s); err != nil {
		return errors.Join(err, s.kill())
	}
	return errors.Join(s.stop(), s.remove())
}

// meter measures the CPU time a process takes for a piece of work.
type meter struct {
	process *process
	before  time.Duration
}

func startMeter(p *process) (meter, error) {
	before, err := p.cpu()
	return meter{p, before}, err
}

// per returns the CPU time since the start, in microseconds for each of n.
func (m meter) per(n int) (float64, error) {
	now, err := m.process.cpu()
	return microseconds(now-m.before) / float64(n), err
}
