package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	goalVisible = 2 * time.Second
	// visibleRate is the intake that goes on meanwhile.
	visibleRate = 50_000
	dashboards  = 3
	// refresh is how long a dashboard waits before it asks all its questions
	// again.
	refresh = time.Second
)

// measureVisible measures the time from an answer to a query that sees the
// event, when nothing else happens and under load.
func (b *bench) measureVisible(ctx context.Context) error {
	probes := b.scaled(150)
	err := b.with(ctx, func(s *server) error {
		took, err := s.probe(ctx, probes)
		if err != nil {
			return err
		}
		b.addVisible("idle", took)
		if _, err = b.runBatches(ctx, s, b.scaled(1_000_000)); err != nil {
			return err
		}
		load, err := startStream(ctx, s, visibleRate, b.nextSeed())
		if err != nil {
			return err
		}
		boards := startDashboards(ctx, s, dashboards)
		took, err = s.probe(ctx, probes)
		asked, boardsErr := boards.end()
		rate, loadErr := load.end()
		if err := errors.Join(err, boardsErr, loadErr); err != nil {
			return err
		}
		b.addVisible(fmt.Sprintf("with %s events/s coming in and %d dashboards open (%s)", round(rate), dashboards, asked), took)
		return nil
	})
	return err
}

func (b *bench) addVisible(when string, took []time.Duration) {
	b.add(row{
		what: "202 → visible in a query, " + when, goal: "p99 ≤ 2 s",
		measured: fmt.Sprintf("%s (%d events)", latency(took), len(took)), cpu: "–", baseline: "–",
		met: met(percentile(took, 0.99) <= goalVisible),
	})
}

// probe sends single events, one after the other, and returns how long after
// the answer each was found by a query that counts it.
func (s *server) probe(ctx context.Context, probes int) ([]time.Duration, error) {
	c, err := dial(ctx, s.address)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range probes {
		one, err := s.probeOne(ctx, c, fmt.Sprintf("probe %d of %d", i, time.Now().UnixNano()))
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		took = append(took, one)
		time.Sleep(rand.N(200 * time.Millisecond)) // meet the server at any moment of what it does
	}
	return took, c.close()
}

func (s *server) probeOne(ctx context.Context, c *connection, event string) (time.Duration, error) {
	// Its time lies ahead of all others', so that the question is cheap.
	at := time.Now().UTC().Add(2 * time.Minute)
	body := fmt.Appendf(nil, `{"events":[{"event":%q,"user_id":"probe","ts":%q}]}`, event, at.Format(time.RFC3339))
	if _, err := c.do(append(header(s.address, s.ServerKey, len(body)), body...)); err != nil {
		return 0, err
	}
	acknowledged := time.Now()
	question := fmt.Appendf(nil, `{"type":"trend","interval":"hour","measure":"count","event":%q,"from":%q,"to":%q}`,
		event, at.Add(-time.Minute).Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339))
	for {
		var answer struct {
			Series []struct {
				Points []struct {
					Value int64 `json:"value"`
				} `json:"points"`
			} `json:"series"`
		}
		if err := s.query(ctx, question, &answer); err != nil {
			return 0, err
		}
		for _, series := range answer.Series {
			for _, point := range series.Points {
				if point.Value > 0 {
					return time.Since(acknowledged), nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}
