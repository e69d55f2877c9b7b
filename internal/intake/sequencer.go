package intake

import (
	"errors"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// ErrNoAnswer is returned when the process is ending and nobody knows whether
// the request will be found on disk. The caller must cut the connection: any
// answer could be wrong.
var ErrNoAnswer = errors.New("the outcome is unknown; no answer may be given")

const (
	// queueSize is how many requests wait while a group is being decided.
	queueSize = 1024
	// maxGroupItems and maxGroupBytes bound a group, so that nobody waits long
	// for the neighbours' work.
	maxGroupItems = 20_000
	maxGroupBytes = 8 << 20
)

// submission is one request's valid items on their way through the sequencer.
type submission struct {
	header   record.Record
	items    []intakestore.Item
	bytes    int
	verdicts []dedup.Verdict
	received int64
	charge   charge
	// position is that of the first new item; 0 if nothing is new.
	position uint64
	err      error
	done     chan struct{}
}

// group is what is decided and written together.
type group struct {
	subs    []*submission
	items   int
	bytes   int
	pending *intakestore.Pending
	began   time.Duration
}

// sequencer decides all items in one goroutine, one group after the other, and
// answers in the order of the groups: a repeat is told "duplicate" only once
// the original is on disk.
type sequencer struct {
	store    *intakestore.Store
	window   int64
	clock    *windowClock
	elapsed  func() time.Duration
	guard    func() error
	quota    Quota // nil: everything is admitted
	fatal    func(error)
	observer Observer
	// stored holds a token when something new is on disk.
	stored chan struct{}

	decider *dedup.Group
	queue   chan *submission
	decided chan *group
	stop    sync.Once
	// closing guards queue: no send after close.
	closing sync.RWMutex
	closed  bool
	workers sync.WaitGroup
}

func (q *sequencer) start() {
	q.decider = dedup.NewGroup(q.store)
	q.queue = make(chan *submission, queueSize)
	// Unbuffered: one group is on its way to disk while the next is being
	// decided, and what arrives meanwhile gathers for the one after.
	q.decided = make(chan *group)
	q.stored = make(chan struct{}, 1)
	q.workers.Go(q.decideAll)
	q.workers.Go(q.answerAll)
}

// close answers what has been submitted and stops. Later submissions are
// refused.
func (q *sequencer) close() {
	q.stop.Do(func() {
		q.closing.Lock()
		q.closed = true
		close(q.queue)
		q.closing.Unlock()
	})
	q.workers.Wait()
}

// submit hands a request's items over and returns once they are on disk. It
// does not give up when the caller does: the items' bytes are in use.
func (q *sequencer) submit(s *submission) error {
	s.done = make(chan struct{})
	q.closing.RLock()
	if q.closed {
		q.closing.RUnlock()
		return fault.New(api.CodeUnavailable, "The server is shutting down").With("applied", false).After(time.Second)
	}
	q.queue <- s
	q.closing.RUnlock()
	<-s.done
	return s.err
}

func (q *sequencer) decideAll() {
	defer close(q.decided)
	for first := range q.queue {
		g := q.collect(first)
		if err := q.decide(g); err != nil {
			g.fail(err)
			continue
		}
		q.decided <- g
	}
}

// collect takes what has arrived by now.
func (q *sequencer) collect(first *submission) *group {
	g := &group{began: q.elapsed()}
	g.add(first)
	for g.items < maxGroupItems && g.bytes < maxGroupBytes {
		select {
		case s, ok := <-q.queue:
			if !ok {
				return g
			}
			g.add(s)
		default:
			return g
		}
	}
	return g
}

func (g *group) add(s *submission) {
	g.subs = append(g.subs, s)
	g.items += len(s.items)
	g.bytes += s.bytes
}

// fail refuses every request of a group of which nothing was written.
func (g *group) fail(err error) {
	for _, s := range g.subs {
		s.err = err
		close(s.done)
	}
}

// decide judges a group and writes what is new. An error is a refusal: nothing
// of the group was written.
func (q *sequencer) decide(g *group) error {
	if err := q.guard(); err != nil {
		return err
	}
	now, err := q.clock.now()
	if err != nil {
		q.observer.ClockJumped()
		return err
	}
	entries, fresh, err := q.judgeAll(g, now)
	if err != nil {
		q.giveBack(g)
		return fault.Wrap(api.CodeInternal, err, "The claims could not be read; nothing was accepted")
	}
	if len(entries) == 0 {
		return nil
	}
	g.pending, err = q.store.Commit(intakestore.Group{Received: now, Window: q.window, Entries: entries})
	if err != nil {
		q.fatal(err)
		return ErrNoAnswer
	}
	for i, s := range fresh {
		s.position = entries[i].Header.Position
	}
	return nil
}

// judgeAll returns what is to be written of a group, and of which requests. Those
// that are over their quota have their error.
func (q *sequencer) judgeAll(g *group, now int64) (entries []intakestore.Entry, fresh []*submission, err error) {
	q.decider.Begin(now, q.window)
	entries, fresh = make([]intakestore.Entry, 0, len(g.subs)), make([]*submission, 0, len(g.subs))
	for _, s := range g.subs {
		s.received = now
		entry := intakestore.Entry{Header: s.header}
		if entry.Items, err = q.judge(s); err != nil {
			return nil, nil, err
		}
		if len(entry.Items) == 0 {
			continue
		}
		if s.err = q.admit(s, entry.Items); s.err == nil {
			entries, fresh = append(entries, entry), append(fresh, s)
		}
	}
	return entries, fresh, nil
}

// judge fills in the verdicts of a request and returns its new items.
func (q *sequencer) judge(s *submission) ([]intakestore.Item, error) {
	s.verdicts = make([]dedup.Verdict, len(s.items))
	fresh := make([]intakestore.Item, 0, len(s.items))
	for i, it := range s.items {
		if it.Claimed {
			id := record.Identity{Project: s.header.Project, KeyKind: s.header.KeyKind, EventID: it.EventID}
			verdict, err := q.decider.Decide(id, it.Fingerprint)
			if err != nil {
				return nil, err
			}
			if s.verdicts[i] = verdict; verdict != dedup.New {
				continue
			}
		}
		fresh = append(fresh, it)
	}
	return fresh, nil
}

func (q *sequencer) answerAll() {
	for g := range q.decided {
		if g.pending != nil {
			if err := g.pending.Wait(); err != nil {
				q.fatal(err)
				g.fail(ErrNoAnswer)
				continue
			}
			select {
			case q.stored <- struct{}{}:
			default:
			}
		}
		q.observer.Group(len(g.subs), g.items, q.elapsed()-g.began)
		for _, s := range g.subs {
			close(s.done)
		}
	}
}
