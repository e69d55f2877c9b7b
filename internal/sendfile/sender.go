package sendfile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// linger is how long an item waits for others before a batch that is not full
// is sent, so that lines arriving slowly on standard input are not held back.
const linger = time.Second

// maxEventID is how many characters of a rejected item's id are shown.
const maxEventID = 64

// ErrInterrupted says that the caller ended the run.
var ErrInterrupted = errors.New("interrupted")

// RefusedError says that the server refused a request in a way that sending
// it again does not change.
type RefusedError struct {
	Status int
	// Code is empty if the answer was not in our envelope.
	Code      string
	Message   string
	RequestID string
}

func (e *RefusedError) Error() string {
	text := "the server refused the request: "
	if e.Code == "" {
		return text + e.Message
	}
	text += fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message)
	if e.RequestID != "" {
		text += fmt.Sprintf(" (request %s)", e.RequestID)
	}
	return text
}

// SenderParams are what a sender needs.
type SenderParams struct {
	// URL is that of /v1/track.
	URL string
	// Key is the ingest key. It is sent in the Authorization header and
	// appears nowhere else.
	Key       string
	UserAgent string
	// HTTP makes the requests; its Timeout bounds each of them. It should not
	// follow redirects.
	HTTP *http.Client
	// Historical marks the batches as historical.
	Historical bool
	// BatchSize is the largest number of items in a request, 1 to MaxBatch.
	BatchSize int
	Retry     retry.Policy
	// Now is the clock for Elapsed.
	Now func() time.Time
	// OnRejected is called for each rejected item, OnRetry before each wait,
	// OnSent after each request with a verdict. Each may be nil. They are
	// called by the goroutine of Run, one at a time.
	OnRejected func(Rejected)
	OnRetry    func(retry.Retry)
	OnSent     func(Summary)
}

// Sender sends items in order, one request at a time.
type Sender struct {
	p       SenderParams
	client  client
	batch   batch
	summary Summary
	started time.Time
}

// NewSender returns a sender that has sent nothing.
func NewSender(p SenderParams) *Sender {
	return &Sender{
		p:       p,
		client:  client{http: p.HTTP, url: p.URL, key: p.Key, userAgent: p.UserAgent},
		batch:   newBatch(p.BatchSize, p.Historical),
		summary: Summary{Reasons: []Reason{}},
		started: p.Now(),
	}
}

// Summary returns the counts so far.
func (s *Sender) Summary() Summary {
	sum := s.summary
	sum.Elapsed = s.p.Now().Sub(s.started)
	sum.Seconds = sum.Elapsed.Seconds()
	return sum
}

// Run sends everything the feed delivers. When ctx is done it lets the
// request in flight finish and returns an error that is [ErrInterrupted].
// Other errors: *[RefusedError]; *[retry.Error] when attempts or time ran
// out; the feed's own, after what it delivered before has been sent.
func (s *Sender) Run(ctx context.Context, feed <-chan Read) error {
	for {
		more, err := s.fill(ctx, feed)
		if ctx.Err() != nil && more {
			return fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
		}
		if err2 := s.sendBatch(ctx); err2 != nil {
			return err2
		}
		if err != nil || !more {
			return err
		}
	}
}

// fill collects items until the batch is full, its first item has waited long
// enough, the feed has ended (more is then false) or ctx is done.
func (s *Sender) fill(ctx context.Context, feed <-chan Read) (more bool, err error) {
	var waited <-chan time.Time
	if !s.batch.empty() {
		waited = time.After(linger)
	}
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case <-waited:
			return true, nil
		case read, open := <-feed:
			if !open || read.Err != nil {
				return ctx.Err() != nil, read.Err
			}
			if s.batch.empty() {
				waited = time.After(linger)
			}
			if full := s.take(read.Item); full {
				return true, nil
			}
		}
	}
}

// take adds an item to the batch and reports whether the batch is full.
func (s *Sender) take(item Item) (full bool) {
	s.summary.Read++
	if item.Code != "" {
		s.reject(Rejected{item.Source, item.Line, item.EventID, item.Code, item.Message})
		return false
	}
	return s.batch.add(item)
}

func (s *Sender) reject(r Rejected) {
	r.EventID = printable(r.EventID, maxEventID)
	s.summary.reject(r)
	if s.p.OnRejected != nil {
		s.p.OnRejected(r)
	}
}

// sendBatch sends the items collected.
func (s *Sender) sendBatch(ctx context.Context) error {
	items := s.batch.next()
	if len(items) == 0 {
		return nil
	}
	return s.send(ctx, items)
}

// send sends items in one request, or in halves if that is too large.
func (s *Sender) send(ctx context.Context, items []Item) error {
	body := s.batch.body(items)
	attempts := 0
	got, err := retry.Do(ctx, s.policy(), func(ctx context.Context) (answer, retry.Outcome) {
		attempts++
		s.summary.Requests++
		return s.client.post(context.WithoutCancel(ctx), body, len(items))
	})
	s.summary.Retries += attempts - 1
	if err == nil && got.stranger == "" {
		s.record(items, got.TrackResponse, attempts > 1)
		return nil
	}
	if e, ok := errors.AsType[*retry.Error](err); ok && e.Outcome.Status == http.StatusRequestEntityTooLarge {
		return s.split(ctx, items, len(body))
	}
	return explain(got, err)
}

func (s *Sender) policy() retry.Policy {
	p := s.p.Retry
	p.OnRetry = s.p.OnRetry
	return p
}

// record counts a verdict.
func (s *Sender) record(items []Item, got api.TrackResponse, repeated bool) {
	s.summary.Sent += len(items)
	s.summary.Accepted += got.Accepted
	s.summary.Duplicates += got.Duplicates
	if repeated {
		s.summary.OwnDuplicates += got.Duplicates
	}
	for _, r := range got.Rejected {
		item := items[r.Index]
		s.reject(Rejected{item.Source, item.Line, item.EventID, r.Code, s.client.clean(r.Message)})
	}
	if s.p.OnSent != nil {
		s.p.OnSent(s.Summary())
	}
}

// split sends the two halves of a request that was too large, and keeps later
// ones smaller. A single item that is too large is rejected.
func (s *Sender) split(ctx context.Context, items []Item, size int) error {
	if len(items) == 1 {
		s.summary.Sent++
		item := items[0]
		s.reject(Rejected{
			item.Source, item.Line, item.EventID, api.RejectEventTooLarge,
			fmt.Sprintf("the server refuses a body of %d bytes", size),
		})
		return nil
	}
	s.batch.shrink(size / 2)
	for _, half := range [][]Item{items[:len(items)/2], items[len(items)/2:]} {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
		}
		if err := s.send(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

// explain turns the end of a request into the error Run returns.
func explain(got answer, err error) error {
	if err == nil {
		return &RefusedError{Message: fmt.Sprintf("the answer is not one of ActionPulse (%s): is the URL right?", got.stranger)}
	}
	e, ok := errors.AsType[*retry.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("%w: %w", ErrInterrupted, err)
	case e.Verdict.Retry || e.Outcome.Err != nil:
		return e
	default:
		return &RefusedError{Status: e.Outcome.Status, Code: e.Outcome.Code, Message: got.message, RequestID: got.requestID}
	}
}
