package actionpulse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// Tracker takes events at the moment they happen and sends them later, by the
// rules of package retry. It is safe for concurrent use, and one goroutine of
// its own makes one request at a time.
//
// # What it keeps
//
// Id and time of an event are fixed by Track, and never change. With a folder
// the record is on disk when Track returns: it survives kill -9 and a power
// cut, and a new tracker on the folder goes on with it. A record leaves the
// outbox only when the server has accepted or rejected it, or aloud: in the
// log and by a callback. None younger than 47 hours is given up, and none
// older is sent, since intake knows an id for 48 hours.
//
// A record belongs to the kind of key that the tracker had when it was made,
// and leaves with a key of that kind only, because the kind is part of an
// event's identity.
//
// Within a process a batch is repeated as it was: the same records in the same
// order, byte for byte. Batches are not remembered across a restart, where ids
// alone keep a repeat from being stored twice.
//
// Alias is repeated like an event, since a pair that is linked stays as it
// is. Identify adds an event each time the server takes it, and has no id: it
// is repeated only when it certainly was not taken. When that is not known, the
// tracker sends an alias instead, so that the link is made, and says that the
// record was given up ([GaveUpOutcomeUnknown]).
type Tracker struct {
	o    TrackerOptions
	send sender
	// own says that the connections of send are nobody else's.
	own   bool
	main  *lane
	lanes []*lane
	box   *outbox.Outbox
	clock clock

	// stop ends the sender at once; done is closed when it has ended.
	stop context.CancelFunc
	done chan struct{}
	wake chan struct{}
	// dozing says that the sender waits for a first record.
	dozing atomic.Bool

	mu    sync.Mutex
	stats TrackerStats
	// closed says that nothing is taken any more.
	closed bool
	// taking counts calls of Track that have begun.
	taking sync.WaitGroup
	// moved is closed, and replaced, whenever a waiting Flush should look.
	moved chan struct{}
}

// NewTracker makes a tracker of a server, such as https://pulse.example, that
// sends with an ingest key. It starts with what the folder holds. Errors:
// ErrOutboxInUse, ErrOutboxOwner, unfit options, or what the disk said.
func NewTracker(server, key string, o TrackerOptions) (*Tracker, error) {
	base, err := serverURL(server)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(key, o.KeyKind)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := o.validate(kind); err != nil {
		return nil, err
	}
	t := &Tracker{
		o: o, send: sender{server: base, agent: userAgent}, clock: newClock(o.Now),
		done: make(chan struct{}), wake: make(chan struct{}, 1), moved: make(chan struct{}),
	}
	if o.UserAgent != "" {
		t.send.agent = o.UserAgent + " " + userAgent
	}
	t.send.http, t.own = o.client()
	t.main = &lane{kind: kind, key: key}
	t.lanes = []*lane{t.main}
	if err := t.open(base); err != nil {
		return nil, errors.Join(err, t.closeOutbox())
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	go t.run(ctx)
	return t, nil
}

// kindOf checks a key and tells its kind, which the caller may know better.
func kindOf(key string, known KeyKind) (KeyKind, error) {
	if err := usable(key); err != nil {
		return "", err
	}
	if known == "" {
		return KindOfKey(key)
	}
	return known, known.validate()
}

// Track takes an event and returns its id. It does not wait for the network.
// Errors: *InvalidEventError, ErrTooOld, ErrOutboxFull, ErrTrackerClosed, or
// what the disk said; then the event is not kept.
func (t *Tracker) Track(e Event) (eventID string, err error) {
	if e.ID == "" {
		if e.ID, err = t.o.NewID(); err != nil {
			return "", fmt.Errorf("actionpulse: make an event id: %w", err)
		}
	}
	now := t.o.Now()
	r, err := e.encode(e.ID, timeOr(e.Time, now))
	if err != nil {
		return "", err
	}
	if err := t.keep(r, now); err != nil {
		return "", err
	}
	return t.main.show(r).EventID, nil
}

// Identify links an anonymous id to a user, sets traits and adds one event
// named identify. Errors: those of Track.
func (t *Tracker) Identify(i Identity) error {
	now := t.o.Now()
	r, err := i.encode(timeOr(i.Time, now))
	if err != nil {
		return err
	}
	return t.keep(r, now)
}

// Alias links an anonymous id to a user and adds nothing. It needs a server key
// or a legacy key. Errors: those of Track.
func (t *Tracker) Alias(anonID, userID string) error {
	if t.main.kind == KeyBrowser {
		return errors.New("actionpulse: alias is not allowed to a browser token")
	}
	now := t.o.Now()
	r, err := Identity{AnonID: anonID, UserID: userID}.encodeAlias(now)
	if err != nil {
		return err
	}
	return t.keep(r, now)
}

func timeOr(t, standard time.Time) time.Time {
	if t.IsZero() {
		return standard
	}
	return t
}

// keep puts a record into the outbox and wakes the sender if need be.
func (t *Tracker) keep(r outbox.Record, now time.Time) error {
	r.Queued = now.UnixMilli()
	if age(r, now, t.o.Historical) > MaxKept {
		return ErrTooOld
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrTrackerClosed
	}
	t.taking.Add(1)
	t.mu.Unlock()
	defer t.taking.Done()
	switch _, err := t.main.queue.Append(r); {
	case errors.Is(err, outbox.ErrFull):
		return ErrOutboxFull
	case err != nil:
		return fmt.Errorf("actionpulse: %w", err)
	}
	if t.main.arrived(r, t.o) || t.dozing.CompareAndSwap(true, false) {
		t.rouse()
	}
	return nil
}

// rouse has the sender look at what there is.
func (t *Tracker) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Stats returns the counts so far.
func (t *Tracker) Stats() TrackerStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	for _, l := range t.lanes {
		if n := l.queue.State().Records; l.key == "" {
			s.Held += n
		} else {
			s.Pending += n
		}
	}
	return s
}

// Resume ends a pause, as after a payment or a new quota. A wait that the
// server has named goes on.
func (t *Tracker) Resume() {
	t.mu.Lock()
	for _, l := range t.lanes {
		l.until = l.notBefore
	}
	t.mu.Unlock()
	t.rouse()
}
