package actionpulse

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// Errors of a [Tracker].
var (
	// ErrOutboxFull is returned by Track, Identify and Alias when MaxPending or
	// MaxPendingBytes records wait. The record is not kept.
	ErrOutboxFull = errors.New("actionpulse: the outbox is full")
	// ErrTrackerClosed is returned once Close has been called.
	ErrTrackerClosed = errors.New("actionpulse: the tracker is closed")
	// ErrTooOld is returned for a fact from more than [MaxKept] ago.
	ErrTooOld = errors.New("actionpulse: the fact is more than 47 hours old, and only a Historical tracker sends it")
	// ErrOutboxInUse is returned by NewTracker when another tracker has the
	// folder, in this process or another.
	ErrOutboxInUse = outbox.ErrLocked
	// ErrOutboxOwner is returned by NewTracker when the folder's records are
	// for another server or project.
	ErrOutboxOwner = outbox.ErrOwner
)

// RecordType says which method made a record.
type RecordType string

// The types of records.
const (
	RecordTrack    RecordType = "track"
	RecordIdentify RecordType = "identify"
	RecordAlias    RecordType = "alias"
)

// OutboxRecord is a record as a callback sees it.
type OutboxRecord struct {
	Type RecordType
	// EventID is empty for identify and alias.
	EventID string
	// Time is that of the fact.
	Time    time.Time
	KeyKind KeyKind
	// JSON is the record as it is sent.
	JSON json.RawMessage
}

// Rejected is a record that the server has judged and will never take. It is
// not sent again.
type Rejected struct {
	OutboxRecord

	// Index is its place in the request.
	Index int
	// Code says why. For identify and alias, and when a request with this one
	// record was refused, it is the code of that refusal.
	Code    api.RejectCode
	Message string
}

// GiveUpReason says why a record ends without a verdict of the server.
type GiveUpReason string

// The reasons.
const (
	// GaveUpTooOld: the record could not be sent for 47 hours.
	GaveUpTooOld GiveUpReason = "too_old"
	// GaveUpOutcomeUnknown: an identify was sent, and whether it was taken is
	// not known. The link was made sure of by an alias, unless the key is a
	// browser token; the traits may be missing.
	GaveUpOutcomeUnknown GiveUpReason = "outcome_unknown"
	// GaveUpClosed: the tracker was closed, and its outbox was in memory.
	GaveUpClosed GiveUpReason = "closed"
)

// GaveUp is a record that is not sent any more.
type GaveUp struct {
	OutboxRecord

	Reason GiveUpReason
}

// PausedError says that sending rests, and why. The records stay.
type PausedError struct {
	KeyKind KeyKind
	// Code and Status are of the answer; Code is empty if it was not in the
	// server's envelope, Status 0 if there was no answer.
	Code      api.Code
	Status    int
	Message   string
	RequestID string
	// Until is when it is tried again, unless Resume is called.
	Until time.Time
	// Err is the cause, if there is one.
	Err error
}

func (e *PausedError) Error() string {
	text := "actionpulse: sending with the " + string(e.KeyKind) + " key is paused: " + e.Message
	if e.Code != "" {
		text += fmt.Sprintf(" (%d %s)", e.Status, e.Code)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause, if there is one.
func (e *PausedError) Unwrap() error { return e.Err }

// LeftError is returned by Close when records are left.
type LeftError struct {
	// Records are unsent.
	Records int
	// Kept says that they are in the folder and will be sent by the next
	// tracker there. If not, they are lost, and each was reported.
	Kept bool
	// Err is why: the context's, or a *PausedError.
	Err error
}

func (e *LeftError) Error() string {
	where := "are lost"
	if e.Kept {
		where = "are kept in the folder"
	}
	return fmt.Sprintf("actionpulse: %d records are unsent and %s: %v", e.Records, where, e.Err)
}

// Unwrap returns the cause.
func (e *LeftError) Unwrap() error { return e.Err }

// TrackerStats count records since the tracker was made.
type TrackerStats struct {
	// Pending wait to be sent; Held wait for a key of their kind.
	Pending int
	Held    int
	// Sent were accepted, repeats included; Duplicates of them were repeats.
	Sent       int64
	Duplicates int64
	Rejected   int64
	GaveUp     int64
	// Requests are all that were made, Retries those of them that repeated
	// another.
	Requests int64
	Retries  int64
}

// show makes of a record what callbacks see.
func (l *lane) show(r outbox.Record) OutboxRecord {
	out := OutboxRecord{Time: time.UnixMilli(r.At).UTC(), KeyKind: l.kind, JSON: r.Data}
	switch r.Type {
	case typeTrack:
		out.Type, out.EventID = RecordTrack, uuid.UUID(r.ID).String()
	case typeIdentify:
		out.Type = RecordIdentify
	case typeAlias:
		out.Type = RecordAlias
	}
	return out
}

func (r OutboxRecord) attrs() []any {
	return []any{
		slog.String("type", string(r.Type)), slog.String("event_id", r.EventID),
		slog.Time("time", r.Time), slog.String("key_kind", string(r.KeyKind)),
	}
}

// rejected reports a record that the server refused.
func (t *Tracker) rejected(r Rejected) {
	t.count(func(s *TrackerStats) { s.Rejected++ })
	t.o.Logger.Warn("actionpulse: a record was rejected", append(r.attrs(),
		slog.Int("index", r.Index), slog.String("code", string(r.Code)), slog.String("message", r.Message))...)
	if t.o.OnRejected != nil {
		t.o.OnRejected(r)
	}
}

// gaveUp reports a record that is not sent any more.
func (t *Tracker) gaveUp(l *lane, r outbox.Record, reason GiveUpReason) {
	t.count(func(s *TrackerStats) { s.GaveUp++ })
	g := GaveUp{l.show(r), reason}
	t.o.Logger.Error("actionpulse: a record is given up", append(g.attrs(), slog.String("reason", string(reason)))...)
	if t.o.OnGaveUp != nil {
		t.o.OnGaveUp(g)
	}
}

func (t *Tracker) count(change func(*TrackerStats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.stats)
}

// damaged reports what of the folder cannot be read.
func (t *Tracker) damaged(d outbox.Damage) {
	attrs := []any{slog.String("file", d.File), slog.Int64("from", d.From), slog.Int64("to", d.To)}
	switch {
	case d.Torn:
		t.o.Logger.Info("actionpulse: a record that was being written when the process ended is cut off; its Track had not returned", attrs...)
	case d.Kept == "":
		t.o.Logger.Warn("actionpulse: a part of the outbox cannot be read, so records may be sent again", append(attrs, slog.Any("error", d.Err))...)
	default:
		t.o.Logger.Error("actionpulse: a part of the outbox cannot be read and is set aside",
			append(attrs, slog.String("kept", d.Kept), slog.Any("error", d.Err))...)
	}
}
