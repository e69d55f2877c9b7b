package main

import (
	"context"
	"fmt"
)

// markerConnections is how many pipelines there are at once.
const markerConnections = 64

// measureMarkers measures deploy markers: with new keys, which are synced to
// disk one by one, and repeats, which write nothing.
func (b *bench) measureMarkers(ctx context.Context) error {
	var fresh, again keyedRun
	requests := b.scaled(10_000)
	for range b.runs {
		err := b.with(ctx, func(s *server) error {
			p := keyedParams{
				Requests: requests, Connections: markerConnections,
				Request: func(dst []byte, n int64) []byte { return s.deployRequest(dst, n) },
			}
			if err := fresh.run(ctx, s, p, "201"); err != nil {
				return err
			}
			return again.run(ctx, s, p, "200")
		})
		if err != nil {
			return err
		}
	}
	b.add(row{
		what: fmt.Sprintf("deploy marker, new key, %d connections", markerConnections), goal: "–",
		measured: fresh.format(), cpu: fresh.cpu.format("µs/request"),
		baseline: "the textbook form: see docs/benchmarks-keys.md", met: "–",
	})
	b.add(row{
		what: fmt.Sprintf("deploy marker, repeat of a key, %d connections", markerConnections), goal: "–",
		measured: again.format(), cpu: again.cpu.format("µs/request"), baseline: "new keys: " + fresh.format(), met: "–",
	})
	return nil
}

// deployRequest appends a request for a deploy marker.
func (s *server) deployRequest(dst []byte, n int64) []byte {
	const body = `{"version":"1.4.2","ts":"2026-05-01T10:00:00Z","commit":"3b1ac44"}`
	return fmt.Appendf(dst, "POST /api/v1/projects/%s/release-markers/deploy HTTP/1.1\r\nHost: %s\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nIdempotency-Key: build-%08d\r\nContent-Length: %d\r\n\r\n%s",
		s.ProjectID, s.address, s.CIToken, n, len(body), body)
}

// keyedRun is what several runs of keyed requests have measured.
type keyedRun struct {
	rate, cpu sample
	sent      sent
}

func (k *keyedRun) run(ctx context.Context, s *server, p keyedParams, want string) error {
	used, err := startMeter(s.process)
	if err != nil {
		return err
	}
	p.Want = want
	out, err := sendKeyed(ctx, s, p)
	if err != nil {
		return err
	}
	cpu, err := used.per(out.events)
	k.rate, k.cpu = append(k.rate, perSecond(out.events, out.took())), append(k.cpu, cpu)
	k.sent.latencies = append(k.sent.latencies, out.latencies...)
	return err
}

func (k *keyedRun) format() string {
	return k.rate.format("requests/s") + ", " + latency(k.sent.latencies)
}
