package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measureRepeat measures batches that are stored already against their first
// time, and what the repeats make the server write.
func (b *bench) measureRepeat(ctx context.Context) error {
	batches := b.scaled(400)
	var first, again, firstCPU, againCPU sample
	var grown growth
	for range b.runs {
		err := b.with(ctx, func(s *server) error {
			r, err := newRepeater(ctx, s, batches, b.nextSeed())
			if err != nil {
				return err
			}
			if first, firstCPU, err = r.pass(first, firstCPU, 0); err != nil {
				return err
			}
			before, err := s.settled(ctx)
			if err != nil {
				return err
			}
			if again, againCPU, err = r.pass(again, againCPU, batchEvents); err != nil {
				return err
			}
			after, err := s.growth()
			grown = grown.add(after.minus(before))
			return errors.Join(err, r.connection.close())
		})
		if err != nil {
			return err
		}
	}
	b.add(row{
		what: fmt.Sprintf("repeat of a stored batch of %d, one connection", batchEvents), goal: "faster than its first time, nothing written",
		measured: fmt.Sprintf("%s; %d batches repeated: positions +%d, files %+d bytes, written %d bytes",
			again.format("ms/batch"), b.runs*batches, grown.position, grown.files, grown.written),
		cpu: againCPU.format("µs/event"), baseline: "first time: " + first.format("ms/batch") + ", " + firstCPU.format("µs/event"),
		met: met(again.median() < first.median() && grown == growth{}),
	})
	return nil
}

// repeater sends the same batches again and again over one connection.
type repeater struct {
	server     *server
	connection *connection
	requests   [][]byte
}

func newRepeater(ctx context.Context, s *server, batches int, seed uint64) (*repeater, error) {
	c, err := dial(ctx, s.address)
	if err != nil {
		return nil, err
	}
	r := &repeater{server: s, connection: c}
	fresh := s.request(batchEvents, seed)
	for range batches {
		fresh.renew()
		r.requests = append(r.requests, bytes.Clone(fresh.bytes))
	}
	return r, nil
}

// pass sends every batch once and adds the milliseconds for each batch and the
// server's microseconds for each event.
func (r *repeater) pass(took, cpu sample, duplicates int) (sample, sample, error) {
	used, err := startMeter(r.server.process)
	if err != nil {
		return took, cpu, err
	}
	want := verdict(batchEvents, duplicates)
	began := time.Now()
	for _, request := range r.requests {
		answer, err := r.connection.do(request)
		if err != nil {
			return took, cpu, err
		}
		if !bytes.HasPrefix(answer, want) {
			return took, cpu, fmt.Errorf("%w: %s", errAnswer, answer)
		}
	}
	each := milliseconds(time.Since(began)) / float64(len(r.requests))
	used1, err := used.per(batchEvents * len(r.requests))
	return append(took, each), append(cpu, used1), err
}

// growth is what is there of a server's intake, and how much it grows.
type growth struct {
	// position is the last one acknowledged.
	position int64
	// files is the size of the intake store's files, written what the process
	// has made the system write to disks.
	files, written int64
}

func (g growth) add(o growth) growth {
	return growth{g.position + o.position, g.files + o.files, g.written + o.written}
}

func (g growth) minus(o growth) growth {
	return growth{g.position - o.position, g.files - o.files, g.written - o.written}
}

func (s *server) growth() (g growth, err error) {
	mark, err := os.ReadFile(filepath.Join(s.dir, "ACKNOWLEDGED"))
	if err != nil || len(mark) < 8 {
		return g, fmt.Errorf("read the last position: %w", err)
	}
	g.position = int64(binary.BigEndian.Uint64(mark))
	if g.files, _, err = s.files(); err != nil {
		return g, err
	}
	g.written, err = s.written()
	return g, err
}

// settled waits until the server has stored everything and writes nothing any
// more.
func (s *server) settled(ctx context.Context) (growth, error) {
	if err := s.awaitStored(ctx, time.Now()); err != nil {
		return growth{}, err
	}
	const quiet = 2 * time.Second
	last, err := s.growth()
	for err == nil {
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-time.After(quiet):
		}
		var now growth
		if now, err = s.growth(); err == nil && now == last {
			return now, nil
		}
		last = now
	}
	return last, err
}
