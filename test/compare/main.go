// Command compare measures what idempotency costs and what it is worth: the
// same paid work behind this project's engine in both forms, behind the
// textbook form (look the key up, work, insert the key last), behind the
// in-memory middleware of a well-known framework, and behind nothing. Each is
// asked the same questions in the same run, and its wrong answers are counted.
//
// It is a module of its own, so that the product does not depend on what it is
// compared with.
//
//	cd test/compare && go run . -out ../../docs/benchmarks-keys.md
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	out := flag.String("out", "", "Markdown file to write; standard output if empty")
	rounds := flag.Int("rounds", 200, "keys to count wrong answers with")
	runs := flag.Int("runs", 5, "runs of each measurement")
	span := flag.Duration("span", 2*time.Second, "length of one run")
	races := flag.Bool("races", false, "count wrong answers of the ledger and of the textbook form, and measure nothing")
	flag.Parse()
	if err := run(context.Background(), *out, settings{*rounds, *runs, *span, *races}); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type settings struct {
	rounds, runs int
	span         time.Duration
	races        bool
}

// result is one line of the report.
type result struct {
	form            string
	engine          string
	fresh, replays  sample
	wrong           wrong
	comparesNothing bool
}

func run(ctx context.Context, out string, s settings) error {
	dir, err := os.MkdirTemp("", "actionpulse-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing of value is left
	engines, stop, err := startEngines(dir)
	if err != nil {
		return err
	}
	defer stop()
	if s.races {
		return raceReport(ctx, engines, s.rounds, os.Stdout)
	}
	var results []result
	for _, e := range engines {
		for _, f := range forms() {
			fmt.Fprintf(os.Stderr, "%s on %s\n", f.name, e.name)
			r, err := measure(ctx, e, f, s)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", f.name, e.name, err)
			}
			results = append(results, r)
		}
	}
	text := report(results, s)
	if out == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(filepath.Clean(out), []byte(text), 0o644)
}

// measure counts a form's wrong answers, then its speed, on databases of its
// own.
func measure(ctx context.Context, e engine, f form, s settings) (result, error) {
	r := result{form: f.name, engine: e.name, comparesNothing: f.bare}
	db, err := e.open(ctx)
	if err != nil {
		return r, err
	}
	defer db.close()
	if !f.bare {
		if r.wrong, err = countWrong(ctx, f, db, s.rounds); err != nil {
			return r, err
		}
	}
	for range s.runs {
		fresh, replays, err := speed(ctx, f, db, s.span)
		if err != nil {
			return r, err
		}
		r.fresh, r.replays = append(r.fresh, fresh), append(r.replays, replays)
	}
	return r, nil
}
