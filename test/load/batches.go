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
	before, err := s.count(ctx)
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

// measureBatches measures batches on empty folders beside the baseline.
func (b *bench) measureBatches(ctx context.Context) error {
	events := b.scaled(2_000_000)
	var acknowledged, queryable, cpu, one, grouped sample
	for range b.runs {
		err := b.with(ctx, func(s *server) error {
			run, err := b.runBatches(ctx, s, events)
			acknowledged = append(acknowledged, run.acknowledged)
			queryable = append(queryable, run.queryable)
			cpu = append(cpu, run.cpu)
			return err
		})
		if err != nil {
			return err
		}
		if one, err = b.appendRaw(one, events/4, 1); err != nil {
			return err
		}
		if grouped, err = b.appendRaw(grouped, events/4, batchConnections/2); err != nil {
			return err
		}
	}
	baseline := fmt.Sprintf("raw append, a sync each batch: %s; a sync each %d batches: %s",
		one.format("events/s"), batchConnections/2, grouped.format("events/s"))
	b.addBatches("an empty store", batchSamples{acknowledged, queryable, cpu}, baseline)
	return nil
}

// batchSamples are the figures of several runs.
type batchSamples struct{ acknowledged, queryable, cpu sample }

func (b *bench) addBatches(where string, s batchSamples, baseline string) {
	b.add(row{
		what: fmt.Sprintf("track, batches of %d, %d connections, random UUIDs, on %s: durable, deduplicated and queryable", batchEvents, batchConnections, where),
		goal: "≥ 150 k events/s", measured: s.queryable.format("events/s") + "; acknowledged " + s.acknowledged.format("events/s"),
		cpu: s.cpu.format("µs/event"), baseline: baseline, met: met(s.queryable.median() >= goalBatches),
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
