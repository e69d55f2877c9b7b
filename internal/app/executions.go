package app

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/otlp"
	"github.com/actionpulse/actionpulse/internal/storage/executionstore"
)

// executionLease is how long an execution stays with a server of several that
// says nothing any more.
const executionLease = 15 * time.Second

// newExporter returns what sends traces to a collector; nil if there is none.
func newExporter(ctx context.Context, c config.Flows) (*otlp.Exporter, error) {
	if c.OTLPEndpoint == "" {
		return nil, nil //nolint:nilnil // none is asked for
	}
	return otlp.New(ctx, otlp.Params{Endpoint: c.OTLPEndpoint})
}

// newExecutions returns what runs flows, and the service of it.
func newExecutions(p servicesParams, s *services) (*execution.Engine, *execution.Service) {
	params := execution.Params{
		Store: executionstore.New(p.DB), Ledger: s.credits, Flows: s.flows, Slots: p.Flows.Concurrency, Guard: p.Guard, Tally: s.tally,
		TraceRetention: p.Flows.TraceRetention, Clock: p.Now, Random: rand.Reader, Log: p.Log,
	}
	if p.Exporter != nil {
		params.Finished = p.Exporter.Export
	}
	// Reading from this source cannot fail.
	_, _ = rand.Read(params.Owner[:])
	if p.Database != "" { // others may share it
		params.LeaseFor, params.Announce = executionLease, p.DB.Announce
	}
	engine := execution.NewEngine(params)
	return engine, execution.NewService(engine)
}
