package eventstore

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/record"
)

// The times that can be shown in RFC 3339: the years 0000 to 9999.
const (
	minTime = -62167219200000
	maxTime = 253402300799999
)

// batch collects what one transaction adds. Appenders for what is rare are
// made when first needed.
type batch struct {
	store      *Store
	events     *duck.Appender
	windows    *duck.Appender
	traits     *duck.Appender
	quarantine *duck.Appender
	links      []pendingLink
	meter      meter
	// rows and quarantined are how many more there are than before, which may
	// be fewer.
	rows        int64
	quarantined int64
	// usageRows and usageLimit are what the store is to know after the commit.
	usageRows, usageLimit int64
}

// open readies a batch; close ends it, within the same transaction.
func (b *batch) open() (err error) {
	b.events, err = eventAppender(b.store.writer)
	return err
}

func (b *batch) appenders() []*duck.Appender {
	return []*duck.Appender{b.events, b.windows, b.traits, b.quarantine}
}

func (b *batch) close() {
	for _, a := range b.appenders() {
		if a != nil {
			a.Close()
		}
	}
}

// finish writes all that is left and the mark.
func (b *batch) finish(ctx context.Context, mark Mark, window int64) (Mark, error) {
	if err := b.flush(ctx); err != nil {
		return mark, err
	}
	if err := b.saveUsage(ctx); err != nil {
		return mark, err
	}
	if err := b.store.forget(ctx, mark.Received, window); err != nil {
		return mark, err
	}
	crash.Point("eventstore.flushed")
	mark.Rows += b.rows
	mark.Quarantined += b.quarantined
	return mark, writeMark(ctx, b.store.writer, mark, window)
}

// committed tells the store what the batch has changed for good.
func (b *batch) committed() { b.store.usageRows, b.store.usageLimit = b.usageRows, b.usageLimit }

// flush hands everything to the tables.
func (b *batch) flush(ctx context.Context) error {
	for _, a := range b.appenders() {
		if a == nil {
			continue
		}
		if err := a.Flush(); err != nil {
			return err
		}
	}
	links := b.links
	b.links = nil
	return b.store.link(ctx, links)
}

// lazily returns *a, made by open if need be.
func (b *batch) lazily(a **duck.Appender, open func(*duck.Conn) (*duck.Appender, error)) (*duck.Appender, error) {
	if *a != nil {
		return *a, nil
	}
	made, err := open(b.store.writer)
	if err != nil {
		return nil, err
	}
	*a = made
	return made, nil
}

func (b *batch) window(from uint64, window int64) error {
	a, err := b.lazily(&b.windows, windowAppender)
	if err != nil {
		return err
	}
	a.Int64(0, int64(from))
	a.Int64(1, window)
	return a.EndRow()
}

func (b *batch) record(ctx context.Context, r *record.Record, quarantine map[uint64]string) error {
	for i := range r.Items {
		position := r.Position + uint64(i)
		if len(quarantine) > 0 {
			if reason, ok := quarantine[position]; ok {
				if err := b.setAside(r, i, reason); err != nil {
					return err
				}
				continue
			}
		}
		if err := b.item(ctx, r, i); err != nil {
			return &ItemError{Position: position, Err: err}
		}
	}
	return nil
}

// item stores one item of a record: a row, a link and traits, as its type
// says, or takes a person's away.
func (b *batch) item(ctx context.Context, r *record.Record, i int) error {
	it, position := &r.Items[i], r.Position+uint64(i)
	if b.store.opts.Fault != nil {
		if err := b.store.opts.Fault(it); err != nil {
			return err
		}
	}
	if it.TS < minTime || it.TS > maxTime {
		return fmt.Errorf("time %d is outside the years 0000 to 9999", it.TS)
	}
	switch it.Type {
	case record.ItemEvent:
		return b.event(r, it, position)
	case record.ItemIdentify:
		if err := b.event(r, it, position); err != nil {
			return err
		}
		if err := b.setTraits(r, it, position); err != nil {
			return err
		}
		return b.link(r, it, position)
	case record.ItemAlias:
		return b.link(r, it, position)
	case record.ItemErase:
		return b.erase(ctx, r, i)
	default:
		return fmt.Errorf("unknown item type %d", it.Type)
	}
}

// identifyEvent is the name of the row that each call of identify adds; its
// properties are the call's traits.
const identifyEvent = "identify"

func (b *batch) event(r *record.Record, it *record.Item, position uint64) error {
	name, properties := it.Event, it.Properties
	if it.Type == record.ItemIdentify {
		name, properties = identifyEvent, it.Traits
	}
	a := b.events
	a.Int64(colSeq, int64(position))
	a.Uint32(colProject, r.Project)
	a.Int64(colTS, it.TS)
	a.Int64(colReceived, r.Received)
	if it.HasTS {
		a.Int64(colClientTS, it.ClientTS)
	} else {
		a.Null(colClientTS)
	}
	a.Uint8(colTSStatus, uint8(it.TSStatus))
	a.Text(colEvent, name)
	a.TextOrNull(colAnonID, it.AnonID)
	a.TextOrNull(colUserID, it.UserID)
	a.TextOrNull(colSessionID, it.SessionID)
	a.Int64(colPerson, b.person(r.Project, it))
	a.Uint8(colKeyKind, uint8(r.KeyKind))
	a.Int64(colKey, r.Key)
	a.UUID(colEventID, it.EventID)
	a.Bool(colClaimed, it.Claimed)
	a.Uint32(colFingerprint, it.Fingerprint)
	a.TextOrNull(colProperties, text(properties))
	a.TextOrNull(colContext, text(it.Context))
	b.rows++
	b.meter.add(r, it)
	return a.EndRow()
}

func (b *batch) person(project uint32, it *record.Item) int64 {
	if it.UserID != "" {
		return b.store.numbers.User(project, it.UserID)
	}
	return b.store.numbers.Anon(project, it.AnonID)
}

// text views bytes as a string; nobody writes to a record's bytes.
//
//nolint:gosec // see above
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
