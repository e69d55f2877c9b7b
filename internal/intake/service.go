// Package intake takes in what clients send: it decodes and judges every item,
// has the sequencer decide which are new, and answers once they are on disk.
// It never reads the event store and never waits for it.
//
// Invariants:
//   - nothing is answered before the group that holds it is on disk;
//   - a refusal means that nothing of the request was accepted;
//   - the verdict on an item depends on the item and on what was accepted
//     before, never on its neighbours or on the state of the event store.
package intake

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Source says who sent a request.
type Source struct {
	Project uint32
	KeyKind record.KeyKind
	// Key is the number of the credential.
	Key       int64
	UserAgent string
	// Organization is whose project it is, Plan the plan that this has of its
	// own; both are only looked at by Params.Quota.
	Organization string
	Plan         string
}

// Observer is told what intake does. Its methods must be quick.
type Observer interface {
	// Items counts the verdicts of one request.
	Items(source Source, counts Counts)
	// Rejected counts one rejected item.
	Rejected(code api.RejectCode)
	// Group reports a group commit: how many requests and items, and the time
	// from the first request's turn to the answer.
	Group(requests, items int, took time.Duration)
	// ClockJumped reports a group refused because the wall clock jumped.
	ClockJumped()
}

// Counts are the verdicts of one request.
type Counts struct {
	Accepted, Duplicates, Conflicting, Rejected int
}

// Params are what a Service needs.
type Params struct {
	Store  *intakestore.Store
	Window time.Duration
	Clock  Clock
	// Guard returns the refusal to give while nothing may be written, or nil.
	Guard func() error
	// Quota is asked about events that are new; nil admits all.
	Quota Quota
	// Fatal must end the process and not return.
	Fatal    func(error)
	Observer Observer
}

// Service is the intake of one data folder. It is safe for concurrent use.
type Service struct {
	sequencer *sequencer
	clock     *windowClock
	store     *intakestore.Store
	observer  Observer
	debug     *debugger
}

// New starts a Service; Close stops it.
func New(p Params) *Service {
	clock := newWindowClock(p.Clock, p.Store.State().Received)
	s := &Service{
		clock:    clock,
		store:    p.Store,
		observer: p.Observer,
		debug:    newDebugger(),
		sequencer: &sequencer{
			store: p.Store, window: p.Window.Milliseconds(), clock: clock, elapsed: p.Clock.Elapsed,
			guard: p.Guard, quota: p.Quota, fatal: p.Fatal, observer: p.Observer,
		},
	}
	s.sequencer.start()
	return s
}

// Close answers what was submitted and refuses the rest with 503 unavailable.
func (s *Service) Close() { s.sequencer.close() }

// Stored holds a token when records that were not there before are on disk.
func (s *Service) Stored() <-chan struct{} { return s.sequencer.stored }

// Decided returns a position and a window time, in milliseconds since 1970:
// everything acknowledged before that time has at most that position.
func (s *Service) Decided() (position uint64, windowTime int64) {
	windowTime = s.clock.read() // before the position: what is acknowledged in between is later
	return s.store.Durable(), windowTime
}

// CheckClock returns the refusal that a submission would get now because the
// machine's clock has jumped ahead, 503 unavailable, or nil. What else is
// stamped with that clock asks it. A jump is told by what the clock said when the
// Service was made, and since then at the newest submission.
func (s *Service) CheckClock() error {
	_, err := s.clock.peek()
	return err
}

// Debug returns what intake saw lately of a project.
func (s *Service) Debug(project uint32) api.IngestDebug { return s.debug.report(project) }

// Track takes in a batch of events. body is at most 1 MiB and may be reused
// after the return. It returns once every accepted item is on disk. Errors:
// 400 invalid_json, 403 forbidden (historical with a browser token), 422
// validation_failed, 429 quota_exceeded and trial_quota_exceeded (something of
// it is new; nothing was accepted), 500 internal (nothing was accepted), 503
// unavailable (details.applied false), ErrNoAnswer.
func (s *Service) Track(_ context.Context, src Source, body []byte) (api.TrackResponse, error) {
	p := newParser()
	defer p.release()
	b, err := p.batch(body)
	if err != nil {
		return api.TrackResponse{}, err
	}
	if b.clock.Historical && src.KeyKind == record.KeyBrowser {
		return api.TrackResponse{}, fault.New(api.CodeForbidden, "historical is for server and legacy keys only")
	}
	sub := &submission{header: header(src, b.clock), items: b.items, bytes: len(p.encoded), charge: src.charge()}
	if len(sub.items) > 0 {
		if err := s.sequencer.submit(sub); err != nil {
			return api.TrackResponse{}, err
		}
	}
	counts := sub.counts(len(b.rejected))
	s.observe(src, counts, b.rejected)
	s.debug.track(src, b, sub, counts)
	return api.TrackResponse{Accepted: counts.Accepted, Duplicates: counts.Duplicates, Rejected: b.rejected}, nil
}

// Identify links an anon_id to a user_id, sets traits and adds one identify
// event. body is at most 1 MiB and may be reused after the return. Errors: as
// for Track, without 403.
func (s *Service) Identify(_ context.Context, src Source, body []byte) error {
	p := newParser()
	defer p.release()
	it, err := p.identify(body)
	if err != nil {
		return err
	}
	return s.submitOne(src, p, it)
}

// Alias links an anon_id to a user_id. It counts for no quota. Errors: as for
// Identify, without 429.
func (s *Service) Alias(_ context.Context, src Source, body []byte) error {
	p := newParser()
	defer p.release()
	it, err := p.alias(body)
	if err != nil {
		return err
	}
	return s.submitOne(src, p, it)
}

func (s *Service) submitOne(src Source, p *parser, it record.Item) error {
	p.encoded = record.AppendItem(p.encoded, &it)
	sub := &submission{
		header: header(src, record.Clock{}),
		items:  []intakestore.Item{{EventID: it.EventID, Encoded: p.encoded}},
		bytes:  len(p.encoded),
	}
	if it.Type == record.ItemIdentify {
		sub.charge = src.charge()
	}
	if err := s.sequencer.submit(sub); err != nil {
		return err
	}
	counts := Counts{Accepted: 1}
	s.observe(src, counts, nil)
	s.debug.one(src, it, sub.received)
	return nil
}

func (s *Service) observe(src Source, counts Counts, rejected []api.Rejection) {
	s.observer.Items(src, counts)
	for i := range rejected {
		s.observer.Rejected(rejected[i].Code)
	}
}

func header(src Source, clock record.Clock) record.Record {
	return record.Record{Project: src.Project, KeyKind: src.KeyKind, Key: src.Key, Clock: clock}
}

func (s *submission) counts(rejected int) Counts {
	c := Counts{Accepted: len(s.items), Rejected: rejected}
	for _, v := range s.verdicts {
		switch v {
		case dedup.New:
		case dedup.Conflict:
			c.Conflicting++
			c.Duplicates++
		case dedup.Duplicate:
			c.Duplicates++
		}
	}
	return c
}

// newEventID makes an id for an item that came without one.
func newEventID() record.EventID { return record.EventID(uuid.Must(uuid.NewV7())) }
