package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// sendParams say how to send.
type sendParams struct {
	// Requests is how many requests are sent in all.
	Requests int
	// Events is how many events each has.
	Events      int
	Connections int
	// Seed makes the events; those of two seeds differ.
	Seed uint64
	// Latency keeps how long each request took.
	Latency bool
}

// sent is what sending came to.
type sent struct {
	began, ended time.Time
	events       int
	latencies    []time.Duration
}

func (s sent) took() time.Duration { return s.ended.Sub(s.began) }

// send sends new events over several connections, each of which waits for its
// answer, and returns when all have been acknowledged.
func send(ctx context.Context, s *server, p sendParams) (sent, error) {
	senders := make([]*sender, p.Connections)
	var left atomic.Int64
	left.Store(int64(p.Requests))
	for i := range senders {
		c, err := dial(ctx, s.address)
		if err != nil {
			return sent{}, err
		}
		senders[i] = &sender{
			connection: c, request: s.request(p.Events, p.Seed<<16|uint64(i)), left: &left,
			want: verdict(p.Events, 0), latency: p.Latency,
		}
	}
	out := sent{began: time.Now(), events: p.Requests * p.Events}
	err := together(ctx, senders)
	out.ended = time.Now()
	for _, one := range senders {
		out.latencies = append(out.latencies, one.latencies...)
		err = errors.Join(err, one.connection.close())
	}
	return out, err
}

// sender sends over one connection.
type sender struct {
	connection *connection
	request    *request
	left       *atomic.Int64
	want       []byte
	latency    bool
	latencies  []time.Duration
}

// together runs senders at the same time and returns their errors.
func together(ctx context.Context, senders []*sender) error {
	failures := make([]error, len(senders))
	var all sync.WaitGroup
	for i, one := range senders {
		all.Go(func() { failures[i] = one.run(ctx) })
	}
	all.Wait()
	return errors.Join(failures...)
}

func (s *sender) run(ctx context.Context) error {
	for s.left.Add(-1) >= 0 && ctx.Err() == nil {
		s.request.renew()
		began := time.Now()
		answer, err := s.connection.do(s.request.bytes)
		if err != nil {
			return err
		}
		if s.latency {
			s.latencies = append(s.latencies, time.Since(began))
		}
		if !bytes.HasPrefix(answer, s.want) {
			return fmt.Errorf("%w: %s", errAnswer, answer)
		}
	}
	return context.Cause(ctx)
}

// stream sends events at a steady rate until it is ended.
type stream struct {
	stop context.CancelFunc
	done chan error
	// acknowledged counts the events.
	acknowledged atomic.Int64
	rate         int
	began        time.Time
}

// streamEvents is the size of a stream's batches.
const streamEvents = 500

// startStream sends rate events a second in batches of 500; 0 is as many as
// the server takes. Over several connections, so that one slow answer does not
// stop it.
func startStream(ctx context.Context, s *server, rate int, seed uint64) (*stream, error) {
	const connections = 8
	ctx, cancel := context.WithCancel(ctx)
	t := &stream{stop: cancel, done: make(chan error, 1), rate: rate, began: time.Now()}
	due := make(chan struct{}, connections)
	failures := make(chan error, connections)
	for i := range connections {
		c, err := dial(ctx, s.address)
		if err != nil {
			cancel()
			return nil, err
		}
		r := s.request(streamEvents, seed<<16|uint64(i))
		go func() { failures <- t.send(c, r, due) }()
	}
	go func() {
		t.pace(ctx, due)
		close(due)
		var err error
		for range connections {
			err = errors.Join(err, <-failures)
		}
		t.done <- err
	}()
	return t, nil
}

// pace says when a batch is due.
func (t *stream) pace(ctx context.Context, due chan<- struct{}) {
	if t.rate == 0 {
		for ctx.Err() == nil {
			t.offer(ctx, due)
		}
		return
	}
	ticker := time.NewTicker(time.Second * streamEvents / time.Duration(t.rate))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			t.offer(ctx, due)
		case <-ctx.Done():
			return
		}
	}
}

func (t *stream) offer(ctx context.Context, due chan<- struct{}) {
	select {
	case due <- struct{}{}:
	case <-ctx.Done():
	}
}

func (t *stream) send(c *connection, r *request, due <-chan struct{}) error {
	for range due {
		r.renew()
		if _, err := c.do(r.bytes); err != nil {
			return errors.Join(err, c.close())
		}
		t.acknowledged.Add(int64(r.events()))
	}
	return c.close()
}

// end stops the stream and returns how many events a second it came to.
func (t *stream) end() (float64, error) {
	t.stop()
	err := <-t.done
	return float64(t.acknowledged.Load()) / time.Since(t.began).Seconds(), err
}
