package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	singleConnections = 64
	goalSingle        = 15_000
	goalSingleP99     = 50 * time.Millisecond
)

// singleRun is one run of sending requests with one event each.
type singleRun struct {
	rate, cpu sample
	latencies []time.Duration
}

// run sends single events and adds the figures.
func (r *singleRun) run(ctx context.Context, b *bench, s *server) error {
	// Connections, caches and timers are warm in a server that has been up
	// for a while.
	if _, err := send(ctx, s, sendParams{Requests: 2000, Events: 1, Connections: singleConnections, Seed: b.nextSeed()}); err != nil {
		return err
	}
	used, err := startMeter(s.process)
	if err != nil {
		return err
	}
	sent, err := send(ctx, s, sendParams{
		Requests: b.scaled(100_000), Events: 1, Connections: singleConnections, Seed: b.nextSeed(), Latency: true,
	})
	if err != nil {
		return err
	}
	cpu, err := used.per(sent.events)
	r.rate = append(r.rate, perSecond(sent.events, sent.took()))
	r.cpu = append(r.cpu, cpu)
	r.latencies = append(r.latencies, sent.latencies...)
	return err
}

// measureSingle measures requests with one event beside a server that answers
// 202 and does nothing.
func (b *bench) measureSingle(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	var measured, bare singleRun
	for range b.runs {
		err := b.with(ctx, func(s *server) error { return measured.run(ctx, b, s) })
		if err != nil {
			return err
		}
		p, err := launch(ctx, filepath.Join(b.dir, "bare.log"), self, acceptCommand)
		if err != nil {
			return err
		}
		err = bare.run(ctx, b, &server{process: p})
		if err := errors.Join(err, p.kill()); err != nil {
			return err
		}
	}
	p99 := percentile(measured.latencies, 0.99)
	b.add(row{
		what: fmt.Sprintf("track, one event a request, %d connections", singleConnections),
		goal: "≥ 15 k requests/s, p99 ≤ 50 ms", measured: measured.rate.format("requests/s") + ", " + latency(measured.latencies),
		cpu:      measured.cpu.format("µs/request"),
		baseline: fmt.Sprintf("net/http answering 202: %s, %s, %s", bare.rate.format("requests/s"), latency(bare.latencies), bare.cpu.format("µs/request")),
		met:      met(measured.rate.median() >= goalSingle && p99 <= goalSingleP99),
	})
	return nil
}

// acceptCommand makes this program the baseline's server.
const acceptCommand = "accept"

// accept answers every request with 202, as if its one event had been
// accepted.
func accept() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	answer := verdict(1, 0)
	web := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(answer) // the client notices
		}),
	}
	return web.Serve(listener)
}
