package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	goalStartEmpty  = time.Second
	goalStartKilled = 5 * time.Second
)

// measureStart measures how long it takes until a server listens: on an empty
// folder, and after it was killed under load.
func (b *bench) measureStart(ctx context.Context) error {
	var empty sample
	for range b.runs {
		if err := b.with(ctx, func(s *server) error {
			if err := s.restart(ctx); err != nil {
				return err
			}
			empty = append(empty, milliseconds(s.started))
			return nil
		}); err != nil {
			return err
		}
	}
	b.add(row{
		what: "start, empty", goal: "≤ 1 s", measured: empty.format("ms"), cpu: "–", baseline: "–",
		met: met(empty.median() <= milliseconds(goalStartEmpty)),
	})
	return b.with(ctx, func(s *server) error {
		if _, err := b.runBatches(ctx, s, b.scaled(2_000_000)); err != nil {
			return err
		}
		return b.startKilled(ctx, s)
	})
}

func (s *server) restart(ctx context.Context) error {
	if err := s.stop(); err != nil {
		return err
	}
	return s.start(ctx)
}

// startKilled kills a server that takes in all it can, measures its next
// start, and checks that nothing acknowledged is missing.
func (b *bench) startKilled(ctx context.Context, s *server) error {
	var took sample
	stored, err := s.countStored(ctx)
	if err != nil {
		return err
	}
	for range 3 {
		load, err := startStream(ctx, s, 0, b.nextSeed())
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
		if err := s.kill(); err != nil {
			return err
		}
		_, _ = load.end() // the connections broke, as they should
		acknowledged := stored + load.acknowledged.Load()
		if err := s.start(ctx); err != nil {
			return err
		}
		took = append(took, milliseconds(s.started))
		if stored, err = s.countStored(ctx); err != nil {
			return err
		}
		if stored < acknowledged {
			return fmt.Errorf("%w: %d events after the crash, %d were acknowledged", errAnswer, stored, acknowledged)
		}
	}
	b.add(row{
		what: fmt.Sprintf("start after kill -9 under load, %s ids", round(float64(stored))), goal: "≤ 5 s",
		measured: took.format("ms"), cpu: "–", baseline: "–", met: met(took.median() <= milliseconds(goalStartKilled)),
	})
	return nil
}

// countStored counts the events once everything acknowledged is stored.
func (s *server) countStored(ctx context.Context) (int64, error) {
	if err := s.awaitStored(ctx, time.Now()); err != nil {
		return 0, err
	}
	return s.count(ctx)
}

// Sizes of the large folder.
const (
	largeQueryRows = 10_000_000
	largeIDs       = 20_000_000
	largeBytes     = 1 << 30
)

// measureLarge makes a folder with 20 million ids and at least 1 GiB of events,
// through the server, and measures on it.
func (b *bench) measureLarge(ctx context.Context) error {
	if !b.full {
		return nil
	}
	return b.with(ctx, func(s *server) error {
		if err := b.prefill(ctx, s, b.scaled(largeQueryRows)); err != nil {
			return err
		}
		if err := b.askAll(ctx, s); err != nil {
			return err
		}
		if err := b.prefill(ctx, s, b.scaled(largeIDs)); err != nil {
			return err
		}
		var samples batchSamples
		for range b.runs {
			if err := samples.run(ctx, b, s); err != nil {
				return err
			}
		}
		return errors.Join(b.describeLarge(ctx, s, &samples), b.startKilled(ctx, s))
	})
}

func (b *bench) describeLarge(ctx context.Context, s *server, samples *batchSamples) error {
	ids, err := s.count(ctx)
	if err != nil {
		return err
	}
	_, events, err := s.files()
	if err != nil {
		return err
	}
	b.addBatches(fmt.Sprintf("a store of in the end %s ids and %.2f GiB of events", round(float64(ids)), float64(events)/(1<<30)),
		samples)
	return nil
}

// prefill sends events until there are so many, and until the event store is
// large enough when it is the last time.
func (b *bench) prefill(ctx context.Context, s *server, ids int) error {
	for {
		have, err := s.count(ctx)
		if err != nil {
			return err
		}
		_, size, err := s.files()
		if err != nil {
			return err
		}
		b.say("  the folder holds %d events, %d bytes", have, size)
		if have >= int64(ids) && (ids < b.scaled(largeIDs) || float64(size) >= largeBytes*b.scale) {
			return nil
		}
		if _, err := b.runBatches(ctx, s, b.scaled(1_000_000)); err != nil {
			return err
		}
	}
}
