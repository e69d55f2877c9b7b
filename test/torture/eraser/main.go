// Command eraser is the path of an event without a server around it, for tests
// that kill it: it takes commands from standard input, one a line, and answers
// each with a line once it is done.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/materializer"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const window = time.Hour

// path is the path of an event in one folder.
type path struct {
	dir    string
	stores audit.Stores
	intake *intake.Service
	// moved holds a token when something was applied.
	moved chan struct{}
}

func die(err error) { panic(err) }

func (p *path) events() string { return filepath.Join(p.dir, "events.duckdb") }

func (p *path) intakeOptions() intakestore.Options {
	return intakestore.Options{
		Dir: filepath.Join(p.dir, "intake"), Mark: filepath.Join(p.dir, "ACKNOWLEDGED"), Log: slog.New(slog.DiscardHandler), Fatal: die,
	}
}

// run serves a folder, which is made if it is not there. The argument downgrade
// takes the event store back to schema version 1 and ends; rebuild has the
// claims rebuilt first, as a repair does.
func run(ctx context.Context, dir string, args []string) error {
	p := &path{dir: dir, moved: make(chan struct{}, 1)}
	if len(args) > 0 && args[0] == "downgrade" {
		return p.downgrade(ctx)
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	if len(args) > 0 {
		if _, err := p.stores.Rebuild(ctx, window.Milliseconds()); err != nil {
			return err
		}
	}
	p.intake = intake.New(intake.Params{
		Store: p.stores.Intake, Window: window, Clock: intake.SystemClock{}, Guard: func() error { return nil }, Fatal: die, Observer: observer{},
	})
	following, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- p.materializer().Run(following) }()
	err := p.serve(ctx)
	p.intake.Close()
	stop()
	return errors.Join(err, <-done, p.stores.Events.Close(), p.stores.Intake.Close())
}

// serve does what standard input says until it ends.
func (p *path) serve(ctx context.Context) error {
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := p.do(ctx, strings.Fields(lines.Text()))
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	return nil
}

func (p *path) open(ctx context.Context) (err error) {
	if _, err := os.Stat(p.events()); errors.Is(err, os.ErrNotExist) {
		identity := [16]byte{1}
		err := errors.Join(eventstore.Create(ctx, p.events(), identity),
			intakestore.Create(p.intakeOptions(), identity, intakestore.State{Window: window.Milliseconds()}))
		if err != nil {
			return err
		}
	}
	if p.stores.Events, err = eventstore.Open(ctx, eventstore.Options{Path: p.events(), Threads: 1}); err != nil {
		return err
	}
	p.stores.Intake, err = intakestore.Open(p.intakeOptions())
	return err
}

func (p *path) downgrade(ctx context.Context) error {
	db, err := duck.Open(p.events(), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{
		"DROP TABLE usage", "DROP TABLE erased_claims", "DROP TABLE erasures", "DROP TABLE taken_spans", "UPDATE mark SET schema_version = 1", "CHECKPOINT",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (p *path) materializer() *materializer.Materializer {
	return materializer.New(materializer.Params{
		Intake: p.stores.Intake, Events: p.stores.Events, Stored: p.intake.Stored(), Attempt: filepath.Join(p.dir, "attempt.json"),
		MaxDelay: time.Millisecond, Log: slog.New(slog.DiscardHandler), Fatal: die, Observer: observer{moved: p.moved},
	})
}

// observer passes on that something was applied.
type observer struct{ moved chan struct{} }

func (observer) Items(intake.Source, intake.Counts) {}
func (observer) Rejected(api.RejectCode)            {}
func (observer) Group(_, _ int, _ time.Duration)    {}
func (observer) ClockJumped()                       {}
func (observer) Failed()                            {}
func (observer) Quarantined()                       {}
func (o observer) Batch(_ int, _ time.Duration) {
	select {
	case o.moved <- struct{}{}:
	default:
	}
}
