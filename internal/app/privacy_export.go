package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/record"
)

// ExportPerson emits events, links, traits and what was set aside.
func (e privacyEvents) ExportPerson(ctx context.Context, project uint32, p privacy.Person, emit privacy.Emit) error {
	return e.Store.ExportPerson(ctx, project, record.Person(p), func(x eventstore.Exported) error {
		switch {
		case x.Event != nil:
			return emit("event", exportedEventOf(x.Event))
		case x.Link != nil:
			return emit("link", exportedLink{x.Link.AnonID, x.Link.UserID, milliText(x.Link.TS)})
		case x.Trait != nil:
			return emit("trait", exportedTrait{x.Trait.Name, x.Trait.Value, milliText(x.Trait.TS)})
		default:
			return emitQuarantined(x.Quarantined, emit)
		}
	})
}

// exportedEvent is an event in an archive, with the members that queries show.
type exportedEvent struct {
	EventID    string          `json:"event_id"`
	Event      string          `json:"event"`
	TS         string          `json:"ts"`
	ReceivedAt string          `json:"received_at"`
	TSStatus   string          `json:"ts_status"`
	ClientTS   *string         `json:"client_ts"`
	AnonID     *string         `json:"anon_id"`
	UserID     *string         `json:"user_id"`
	SessionID  *string         `json:"session_id"`
	KeyKind    string          `json:"key_kind"`
	Properties json.RawMessage `json:"properties"`
	Context    json.RawMessage `json:"context"`
}

type exportedLink struct {
	AnonID string `json:"anon_id"`
	UserID string `json:"user_id"`
	TS     string `json:"ts"`
}

type exportedTrait struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	TS    string          `json:"ts"`
}

// exportedItem is what could not be stored, with the reason.
type exportedItem struct {
	EventID    string          `json:"event_id"`
	Event      string          `json:"event"`
	ReceivedAt string          `json:"received_at"`
	AnonID     *string         `json:"anon_id"`
	UserID     *string         `json:"user_id"`
	SessionID  *string         `json:"session_id"`
	Properties json.RawMessage `json:"properties"`
	Context    json.RawMessage `json:"context"`
	Traits     json.RawMessage `json:"traits"`
	Reason     string          `json:"reason"`
}

func exportedEventOf(e *eventstore.ExportedEvent) exportedEvent {
	out := exportedEvent{
		EventID: uuid.UUID(e.EventID).String(), Event: e.Event, TS: milliText(e.TS), ReceivedAt: milliText(e.Received), TSStatus: e.TSStatus.String(),
		AnonID: api.OptionalText(e.AnonID), UserID: api.OptionalText(e.UserID), SessionID: api.OptionalText(e.SessionID),
		KeyKind: e.KeyKind.String(), Properties: e.Properties, Context: e.Context,
	}
	if e.ClientTS != nil {
		out.ClientTS = new(milliText(*e.ClientTS))
	}
	return out
}

func emitQuarantined(q *eventstore.Quarantined, emit privacy.Emit) error {
	it := &q.Record.Items[q.Position-q.Record.Position]
	return emit("set_aside", exportedItem{
		EventID: uuid.UUID(it.EventID).String(), Event: it.Event, ReceivedAt: milliText(q.Record.Received),
		AnonID: api.OptionalText(it.AnonID), UserID: api.OptionalText(it.UserID), SessionID: api.OptionalText(it.SessionID),
		Properties: it.Properties, Context: it.Context, Traits: it.Traits, Reason: q.Reason,
	})
}

func milliText(milli int64) string { return api.TimeText(time.UnixMilli(milli)) }
