package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// questions are what a dashboard asks.
var questions = []struct{ name, body string }{
	{"trend", `{"type":"trend","interval":"hour","measure":"count","event":"product_view",PERIOD}`},
	{"unique persons by day", `{"type":"trend","interval":"day","measure":"persons",PERIOD}`},
	{"funnel of 3 steps", `{"type":"funnel","window":"24h","steps":[{"event":"product_view"},{"event":"add_to_cart"},{"event":"purchase"}],PERIOD}`},
	{"breakdown by property", `{"type":"breakdown","by":"properties.channel","measure":"count",PERIOD}`},
}

// ask asks a question and returns how long the answer took.
func (s *server) ask(ctx context.Context, question string) (time.Duration, error) {
	body := []byte(strings.ReplaceAll(question, "PERIOD", period()))
	began := time.Now()
	var answer timed
	err := s.query(ctx, body, &answer)
	return time.Since(began), err
}

// queryRate is the intake that goes on while queries are measured under load.
const queryRate = 25_000

// measureQueries measures queries over a million rows.
func (b *bench) measureQueries(ctx context.Context) error {
	return b.with(ctx, func(s *server) error {
		if _, err := b.runBatches(ctx, s, b.scaled(1_000_000)); err != nil {
			return err
		}
		return b.askAll(ctx, s)
	})
}

// askAll measures each question, with nothing else happening and while events
// come in.
func (b *bench) askAll(ctx context.Context, s *server) error {
	rows, err := s.count(ctx)
	if err != nil {
		return err
	}
	alone, err := s.askEach(ctx)
	if err != nil {
		return err
	}
	load, err := startStream(ctx, s, queryRate, b.nextSeed())
	if err != nil {
		return err
	}
	busy, err := s.askEach(ctx)
	rate, loadErr := load.end()
	if err := errors.Join(err, loadErr); err != nil {
		return err
	}
	for i, q := range questions {
		b.add(row{
			what: fmt.Sprintf("query over %s rows: %s", round(float64(rows)), q.name), goal: "–",
			measured: fmt.Sprintf("%s; with %s events/s coming in: %s", alone[i].format("ms"), round(rate), busy[i].format("ms")),
			cpu:      "–", baseline: "–",
		})
	}
	return nil
}

// asks is how often each question is asked.
const asks = 15

// askEach asks every question several times and returns the milliseconds.
func (s *server) askEach(ctx context.Context) ([]sample, error) {
	out := make([]sample, len(questions))
	for range asks {
		for i, q := range questions {
			took, err := s.ask(ctx, q.body)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], milliseconds(took))
		}
	}
	return out, nil
}

// boards are open dashboards.
type boards struct {
	stop context.CancelFunc
	done chan boardResult
	n    int
}

type boardResult struct {
	took []time.Duration
	// late is how many went past their time budget.
	late int
	err  error
}

// startDashboards opens dashboards, each of which asks all questions one after
// the other, again and again with a pause.
func startDashboards(ctx context.Context, s *server, n int) *boards {
	stopping, stop := context.WithCancel(ctx)
	d := &boards{stop: stop, done: make(chan boardResult, n), n: n}
	for range n {
		go func() { d.done <- s.watch(ctx, stopping) }()
	}
	return d
}

// watch is one dashboard. It ends between two questions.
func (s *server) watch(ctx, stopping context.Context) (out boardResult) {
	for {
		for _, q := range questions {
			if stopping.Err() != nil {
				return out
			}
			took, err := s.ask(ctx, q.body)
			out.took = append(out.took, took)
			switch {
			case errors.Is(err, errBudget):
				out.late++
			case err != nil:
				out.err = err
				return out
			}
		}
		select {
		case <-time.After(refresh):
		case <-stopping.Done():
		}
	}
}

// end closes the dashboards and says how their queries fared.
func (d *boards) end() (string, error) {
	d.stop()
	var took []time.Duration
	var failed error
	late := 0
	for range d.n {
		r := <-d.done
		took, late = append(took, r.took...), late+r.late
		failed = errors.Join(failed, r.err)
	}
	return fmt.Sprintf("their %d queries: %s, %d past the budget of 10 s", len(took), latency(took), late), failed
}
