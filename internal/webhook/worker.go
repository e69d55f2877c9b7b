package webhook

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

const (
	// SendTimeout limits an attempt, from connecting to the end of the answer.
	SendTimeout = 10 * time.Second
	// lease is how long a claim lasts: an attempt and what is written after
	// it, with time to spare for clocks that differ.
	lease = time.Minute
	// pollInterval is how soon a worker sees what another process has left,
	// and what is due again.
	pollInterval = time.Second
	// maxSends is how many attempts a process makes at once, and
	// maxSendsEach how many of them at one endpoint.
	maxSends     = 64
	maxSendsEach = 4
	// recordTimeout limits the last recording of a worker that ends.
	recordTimeout = 5 * time.Second

	// keep is for how long finished deliveries are kept, sweepSize how many
	// rows one transaction deletes.
	keep      = 30 * 24 * time.Hour
	sweepSize = 500
)

// Sender sends a request. It gives up after [SendTimeout].
type Sender interface {
	Send(ctx context.Context, r Request) Response
}

// WorkerParams configures a [Worker]; every member must be set.
type WorkerParams struct {
	Queue  Queue
	Sender Sender
	Clock  func() time.Time
	// Chance gives numbers from 0 up to 1: math/rand/v2.Float64.
	Chance func() float64
	Log    *slog.Logger
}

// Worker sends what is due. Several may work on one store.
type Worker struct {
	params WorkerParams
	woken  chan struct{}
	// ended are attempts that have ended; it holds all that are under way.
	ended chan Result

	// What follows belongs to the goroutine of Run. sending counts the
	// attempts under way by endpoint, recorded those that are not written yet.
	sending map[string]int
	total   int
	results []Result
	// after is the endpoint that was served last.
	after string
}

// NewWorker returns a Worker, which does nothing until it runs.
func NewWorker(p WorkerParams) *Worker {
	return &Worker{params: p, woken: make(chan struct{}, 1), ended: make(chan Result, maxSends), sending: map[string]int{}}
}

// Wake tells the worker that something may be due. It never waits.
func (w *Worker) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Run sends until ctx is done; then it waits for the attempts under way and
// records them.
func (w *Worker) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		w.step(ctx)
		select {
		case <-ctx.Done():
		case <-w.woken:
		case <-ticker.C:
		case r := <-w.ended:
			w.take(r)
		}
	}
	for w.total > 0 {
		w.take(<-w.ended)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	w.record(last)
}

// step records what has ended and begins what is due.
func (w *Worker) step(ctx context.Context) {
	for more := true; more; {
		select {
		case r := <-w.ended:
			w.take(r)
		default:
			more = false
		}
	}
	w.record(ctx)
	claimed, err := w.claim(ctx)
	if err != nil && ctx.Err() == nil {
		w.params.Log.Warn("webhooks could not be claimed", "error", err)
	}
	for i := range claimed {
		w.begin(ctx, &claimed[i])
	}
}

// take notes an attempt that has ended.
func (w *Worker) take(r Result) {
	w.total--
	if w.sending[r.EndpointID]--; w.sending[r.EndpointID] == 0 {
		delete(w.sending, r.EndpointID)
	}
	w.results = append(w.results, r)
}

// record writes what came of attempts. What cannot be written is tried again;
// should the claims end before, the attempts are made again, with the same ids.
func (w *Worker) record(ctx context.Context) {
	if len(w.results) == 0 {
		return
	}
	if err := w.params.Queue.Record(ctx, w.results); err != nil {
		w.params.Log.Warn("what came of webhooks could not be recorded", "attempts", len(w.results), "error", err)
		return
	}
	for _, r := range w.results {
		if r.State != Delivered {
			w.params.Log.Debug("a webhook was not delivered", "delivery", r.ID, "state", r.State, "status", r.Status, "reason", r.Error)
		}
	}
	w.results = nil
}

// claim claims what is due, within the limits.
func (w *Worker) claim(ctx context.Context) ([]Claimed, error) {
	if w.total >= maxSends {
		return nil, nil
	}
	now := w.params.Clock()
	due, err := w.params.Queue.DueEndpoints(ctx, now)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	limits := w.limits(due)
	if len(limits) == 0 {
		return nil, nil
	}
	return w.params.Queue.Claim(ctx, ClaimParams{Limits: limits, Now: now, Until: now.Add(lease)})
}

// limits says how many attempts each endpoint gets, beginning after the one
// that was served last: a busy one does not keep others waiting.
func (w *Worker) limits(due []string) []ClaimLimit {
	first, _ := slices.BinarySearch(due, w.after+"\x00")
	free := maxSends - w.total
	var limits []ClaimLimit
	for _, endpoint := range slices.Concat(due[first:], due[:first]) {
		n := min(maxSendsEach-w.sending[endpoint], free)
		if n <= 0 {
			continue
		}
		free -= n
		w.after = endpoint
		limits = append(limits, ClaimLimit{EndpointID: endpoint, Limit: n})
	}
	return limits
}

// begin sends one delivery beside others. An attempt that has begun is not cut
// short when the worker ends.
func (w *Worker) begin(ctx context.Context, c *Claimed) {
	w.total++
	w.sending[c.EndpointID]++
	go func() {
		request, err := c.request(w.params.Clock())
		response := Response{Err: err}
		if err == nil {
			response = w.params.Sender.Send(context.WithoutCancel(ctx), request)
		}
		w.ended <- c.settle(response, w.params.Clock(), w.params.Chance())
	}()
}

// Sweep deletes what has been finished for 30 days, and what is left of
// deleted endpoints.
func (w *Worker) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := w.params.Queue.Sweep(ctx, SweepParams{Before: w.params.Clock().Add(-keep), Limit: sweepSize})
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}
