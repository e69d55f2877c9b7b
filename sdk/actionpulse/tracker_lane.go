package actionpulse

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// everything is the limit that is none.
var everything = outbox.Limit{Records: math.MaxInt, Bytes: math.MaxInt32}

// lane is the records of one kind of key and what is known of sending them.
type lane struct {
	kind KeyKind
	// key is empty if there is none of this kind: records are held.
	key   string
	queue outbox.Queue

	// newRecords and newBytes count what has arrived since the sender looked.
	newRecords, newBytes atomic.Int64

	// The sender's own: batches that were begun, in order; since when records
	// wait; the size of bodies after a 413, 0 for the normal one, and how many
	// were taken since; refusals of single records without a success between;
	// when held records are looked through next.
	todo      []*batch
	since     time.Time
	limit     int
	taken     int
	refused   int
	nextCheck time.Time

	// Guarded by the tracker's mu: the last pause, which is nil after a
	// success, until when it lasts, and before when Resume cannot end it; up to
	// which number a Flush waits.
	pause     *PausedError
	until     time.Time
	notBefore time.Time
	flushTo   uint64
}

// arrived counts a record and reports whether a batch may be full.
func (l *lane) arrived(r outbox.Record, o TrackerOptions) bool {
	records := l.newRecords.Add(1)
	bytes := l.newBytes.Add(int64(len(r.Data) + 1))
	return records >= int64(o.MaxBatch) || bytes >= int64(o.MaxBytes)
}

// resting reports whether a pause has not ended.
func (l *lane) resting() bool { return l.pause != nil && time.Now().Before(l.until) }

// open opens the outbox and a lane for each key, and for each kind of which
// the folder holds records.
func (t *Tracker) open(server string) error {
	if t.o.Dir == "" {
		t.main.queue = outbox.NewMemory(t.o.outbox(server))
		return nil
	}
	options := t.o.outbox(server)
	options.Damaged = t.damaged
	box, err := outbox.Open(options)
	if err != nil {
		return fmt.Errorf("actionpulse: %w", err)
	}
	t.box = box
	if err := t.addLanes(); err != nil {
		return err
	}
	for _, l := range t.lanes {
		if l.queue, err = box.Queue(string(l.kind)); err != nil {
			return fmt.Errorf("actionpulse: %w", err)
		}
		state := l.queue.State()
		l.flushTo = state.Last // what is there has waited long enough
		if l.key == "" && state.Records > 0 {
			t.o.Logger.Warn("actionpulse: the outbox holds records of a kind of key that the tracker does not have; they wait for one",
				slog.String("key_kind", string(l.kind)), slog.Int("records", state.Records))
		}
	}
	return nil
}

// addLanes adds lanes beside the main one.
func (t *Tracker) addLanes() error {
	for _, key := range t.o.OtherKeys {
		kind, err := kindOf(key, "")
		if err != nil {
			return err
		}
		if t.has(kind) {
			return fmt.Errorf("actionpulse: there are two keys of the kind %s", kind)
		}
		t.lanes = append(t.lanes, &lane{kind: kind, key: key})
	}
	names := make([]string, len(keyKinds))
	for i, kind := range keyKinds {
		names[i] = string(kind)
	}
	found, err := t.box.Kinds(names...)
	if err != nil {
		return fmt.Errorf("actionpulse: %w", err)
	}
	for _, name := range found {
		if !t.has(KeyKind(name)) {
			t.lanes = append(t.lanes, &lane{kind: KeyKind(name)})
		}
	}
	return nil
}

func (t *Tracker) has(kind KeyKind) bool {
	return slices.ContainsFunc(t.lanes, func(l *lane) bool { return l.kind == kind })
}
