package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

const (
	// batchSize is how many events are in a request: few, so that there are
	// many requests to break.
	batchSize = 100
	// workers is how many customers are dealt with at a time.
	workers = 4
	// flowName is the flow that writes letters of thanks.
	flowName = "thank-you"
)

// flowYAML is that flow. The model echo-1 needs no key of a provider: it
// answers with what it is told.
const flowYAML = `
input: {type: object, required: [order], properties: {order: {type: string}}}
steps:
  - id: write
    type: model
    provider: echo
    model: echo-1
    messages: [{role: user, content: "Thank you for ${input.order}."}]
output: "${steps.write.text}"
price: {per_run: "0.5"}
`

// policy is the usual one, but in a hurry: the demo is not to take an hour.
var policy = retry.Policy{
	MaxAttempts: 1000, Budget: time.Minute,
	Delays: retry.Delays{First: 20 * time.Millisecond, Max: 500 * time.Millisecond},
}

// sender does the shop's work. It knows nothing of the network's faults, of
// kills, or of whether it runs for the first time.
type sender struct {
	shop    *shop
	server  string
	keys    credentials
	network http.RoundTripper
	// done counts what is finished: events and orders.
	events, orders atomic.Int64
}

// run does all of it once, events and orders at the same time. The folder is
// where events wait until the server has them.
func (s *sender) run(ctx context.Context, outbox string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var both sync.WaitGroup
	var errs [2]error
	for i, part := range []func() error{
		func() error { return s.track(ctx, outbox) },
		func() error { return s.work(ctx) },
	} {
		both.Go(func() {
			if errs[i] = part(); errs[i] != nil {
				cancel()
			}
		})
	}
	both.Wait()
	return errors.Join(errs[:]...)
}

// track hands all events to a tracker, which sends them.
func (s *sender) track(ctx context.Context, outbox string) error {
	tracker, err := actionpulse.NewTracker(s.server, s.keys.ServerKey, actionpulse.TrackerOptions{
		Dir: outbox, Sync: actionpulse.SyncNever, Historical: true, MaxBatch: batchSize, MaxAge: 10 * time.Millisecond,
		HTTPClient: &http.Client{Transport: s.network, Timeout: 30 * time.Second}, Policy: policy,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	for i := range s.shop.events {
		if _, err := tracker.Track(s.shop.events[i]); err != nil {
			return errors.Join(err, tracker.Close(ctx))
		}
	}
	err = s.flush(ctx, tracker)
	if stats := tracker.Stats(); err == nil && (stats.Rejected > 0 || stats.GaveUp > 0) {
		err = fmt.Errorf("events were rejected or given up: %+v", stats)
	}
	return errors.Join(err, tracker.Close(ctx))
}

// flush waits until the server has all events, and notes how far it is.
func (s *sender) flush(ctx context.Context, tracker *actionpulse.Tracker) error {
	flushed := make(chan error, 1)
	go func() { flushed <- tracker.Flush(ctx) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-flushed:
			s.events.Store(tracker.Stats().Sent)
			return err
		case <-tick.C:
			s.events.Store(tracker.Stats().Sent)
		}
	}
}

// work deals with all customers, some at a time.
func (s *sender) work(ctx context.Context) error {
	client, err := actionpulse.New(s.server, s.keys.ProjectKey, actionpulse.WithTransport(s.network), actionpulse.WithRetry(policy))
	if err != nil {
		return err
	}
	waiting := make(chan *customer, len(s.shop.customers))
	for i := range s.shop.customers {
		waiting <- &s.shop.customers[i]
	}
	close(waiting)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for c := range waiting {
				if errs[i] = s.serve(ctx, client, c); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// serve gives a customer credits, has each order paid, and has letters written.
// The keys say what the work is, and so they are the same whenever it is done.
func (s *sender) serve(ctx context.Context, client *actionpulse.Client, c *customer) error {
	_, err := client.Customers.TopUp(ctx, c.id, actionpulse.TopUp{CreditType: "main", Amount: amountText(welcome)}, actionpulse.WithKey("welcome:"+c.id))
	if err != nil {
		return err
	}
	for _, o := range c.orders {
		if _, err := client.Customers.Charge(ctx, c.id, actionpulse.Move{CreditType: "main", Amount: amountText(o.amount)}, actionpulse.WithKey(o.id)); err != nil {
			return err
		}
		if o.mail {
			_, err := client.Executions.Execute(ctx, actionpulse.Execute{Flow: flowName, Customer: c.id, Input: map[string]string{"order": o.id}}, actionpulse.WithKey(o.id+":mail"))
			if err != nil {
				return err
			}
		}
		s.orders.Add(1)
	}
	return nil
}

// publish makes the flow.
func publish(ctx context.Context, server string, keys credentials) error {
	client, err := actionpulse.New(server, keys.ProjectKey)
	if err != nil {
		return err
	}
	_, err = client.Flows.PublishYAML(ctx, flowName, []byte(flowYAML))
	return err
}
