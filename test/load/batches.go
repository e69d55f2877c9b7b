package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	batchEvents = 500
	// batchConnections is how many clients send batches at the same time.
	batchConnections = 32
	goalBatches      = 150_000
)

// batchRun is one run of sending many batches.
type batchRun struct {
	// acknowledged and queryable are events a second until the last one was
	// acknowledged, and until it could be queried.
	acknowledged, queryable float64
	// cpu is the server's CPU time for each event, in microseconds.
	cpu float64
}

// runBatches sends new events in batches of 500, waits until all of them can
// be queried, and checks that there are as many more as were sent.
func (b *bench) runBatches(ctx context.Context, s *server, events int) (batchRun, error) {
	before, err := s.countStored(ctx)
	if err != nil {
		return batchRun{}, err
	}
	used, err := startMeter(s.process)
	if err != nil {
		return batchRun{}, err
	}
	sent, err := send(ctx, s, sendParams{
		Requests: events / batchEvents, Events: batchEvents, Connections: batchConnections, Seed: b.nextSeed(),
	})
	if err != nil {
		return batchRun{}, err
	}
	if err := s.awaitStored(ctx, sent.ended); err != nil {
		return batchRun{}, err
	}
	total := time.Since(sent.began)
	run := batchRun{acknowledged: perSecond(sent.events, sent.took()), queryable: perSecond(sent.events, total)}
	if run.cpu, err = used.per(sent.events); err != nil {
		return run, err
	}
	after, err := s.count(ctx)
	if err == nil && after-before != int64(sent.events) {
		err = fmt.Errorf("%w: %d events can be queried, sent %d", errAnswer, after-before, sent.events)
	}
	return run, err
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// measureBatches measures batches on empty folders.
func (b *bench) measureBatches(ctx context.Context) error {
	var samples batchSamples
	for range b.runs {
		if err := b.with(ctx, func(s *server) error { return samples.run(ctx, b, s) }); err != nil {
			return err
		}
	}
	b.addBatches("an empty store", &samples)
	return nil
}

// batchSamples are the figures of several runs and of the baseline beside
// them: one with a sync for each batch, one with a sync for several.
type batchSamples struct{ acknowledged, queryable, cpu, one, grouped sample }

// rawGroup is how many batches the grouped baseline writes with one sync.
const rawGroup = batchConnections / 2

// run adds one run.
func (m *batchSamples) run(ctx context.Context, b *bench, s *server) error {
	events := b.scaled(2_000_000)
	r, err := b.runBatches(ctx, s, events)
	if err != nil {
		return err
	}
	m.acknowledged = append(m.acknowledged, r.acknowledged)
	m.queryable = append(m.queryable, r.queryable)
	m.cpu = append(m.cpu, r.cpu)
	if m.one, err = b.appendRaw(m.one, events/4, 1); err != nil {
		return err
	}
	m.grouped, err = b.appendRaw(m.grouped, events/4, rawGroup)
	return err
}

func (b *bench) addBatches(where string, m *batchSamples) {
	b.add(row{
		what: fmt.Sprintf("track, batches of %d, %d connections, random UUIDs, on %s: durable, deduplicated and queryable", batchEvents, batchConnections, where),
		goal: "≥ 150 k events/s", measured: m.queryable.format("events/s") + "; acknowledged " + m.acknowledged.format("events/s"),
		cpu: m.cpu.format("µs/event"),
		baseline: fmt.Sprintf("raw append, a sync each batch: %s; a sync each %d batches: %s",
			m.one.format("events/s"), rawGroup, m.grouped.format("events/s")),
		met: met(m.queryable.median() >= goalBatches),
	})
}

// appendRaw appends the same bytes to a file, with a sync after some batches,
// and adds the events a second to a sample.
func (b *bench) appendRaw(to sample, events, batches int) (sample, error) {
	path := filepath.Join(b.dir, "raw")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return to, fmt.Errorf("open baseline: %w", err)
	}
	r := newRequest(requestParams{Events: batchEvents, Seed: b.nextSeed(), Now: time.Now()})
	began := time.Now()
	for i := range events / batchEvents {
		r.renew()
		if _, err = file.Write(r.body()); err != nil {
			break
		}
		if (i+1)%batches == 0 {
			if err = fdatasync(file); err != nil {
				break
			}
		}
	}
	took := time.Since(began)
	if err := errors.Join(err, file.Close(), os.Remove(path)); err != nil {
		return to, fmt.Errorf("baseline: %w", err)
	}
	return append(to, perSecond(events, took)), nil
}
