package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// keyedParams say how to send requests that each carry an Idempotency-Key.
type keyedParams struct {
	Requests    int
	Connections int
	// Request appends the request with a number, from 0.
	Request func(dst []byte, n int64) []byte
	// Want is the status of every answer.
	Want string
}

// sendKeyed sends requests over several connections, each of which waits for
// its answer.
func sendKeyed(ctx context.Context, s *server, p keyedParams) (sent, error) {
	var next atomic.Int64
	var mu sync.Mutex
	out := sent{began: time.Now(), events: p.Requests}
	failures := make([]error, p.Connections)
	var all sync.WaitGroup
	for i := range p.Connections {
		all.Go(func() {
			var latencies []time.Duration
			latencies, failures[i] = keyedSender(ctx, s.address, p, &next)
			mu.Lock()
			defer mu.Unlock()
			out.latencies = append(out.latencies, latencies...)
		})
	}
	all.Wait()
	out.ended = time.Now()
	return out, errors.Join(failures...)
}

// keyedSender sends over one connection until the numbers run out.
func keyedSender(ctx context.Context, address string, p keyedParams, next *atomic.Int64) (latencies []time.Duration, err error) {
	c, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var request []byte
	for ctx.Err() == nil {
		n := next.Add(1) - 1
		if n >= int64(p.Requests) {
			return latencies, nil
		}
		request = p.Request(request[:0], n)
		began := time.Now()
		if _, err := c.expect(request, p.Want); err != nil {
			return latencies, err
		}
		latencies = append(latencies, time.Since(began))
	}
	return latencies, context.Cause(ctx)
}
