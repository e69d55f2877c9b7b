package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/replay"
)

// privacyReplays is session replays, as privacy jobs see them. An anonymous id
// is meant whatever user a chunk was sent with, as it is of events.
type privacyReplays struct{ service *replay.Service }

func (r privacyReplays) Companions(ctx context.Context, projectID string, p privacy.Person, before time.Time) ([]privacy.Person, error) {
	found, err := r.service.Companions(ctx, projectID, replay.Person(p), before)
	all := make([]privacy.Person, len(found))
	for i, one := range found {
		all[i] = privacy.Person(one)
	}
	return all, err
}

func (r privacyReplays) Newest(ctx context.Context, projectID string) (time.Time, error) {
	return r.service.Newest(ctx, projectID)
}

func (r privacyReplays) DeletePerson(ctx context.Context, projectID string, p privacy.Person, before time.Time) error {
	_, err := r.service.DeletePerson(ctx, projectID, replay.Part{Person: replay.Person(p), AnyUser: true, ReceivedBefore: before})
	return err
}

func (r privacyReplays) DeleteSpans(ctx context.Context, projectID string, spans []privacy.Span, before time.Time) error {
	for _, s := range spans {
		part := partOf(s)
		part.ReceivedBefore = before
		if _, err := r.service.DeletePerson(ctx, projectID, part); err != nil {
			return err
		}
	}
	return nil
}

func (r privacyReplays) Purge(ctx context.Context) error {
	_, err := r.service.Sweep(ctx)
	return err
}

// partOf goes by when chunks were received: when they were recorded only the
// client's clock says, and by a wrong one a user would get what another one did
// on the same computer.
func partOf(s privacy.Span) replay.Part {
	return replay.Part{Person: replay.Person{AnonID: s.AnonID}, Received: &replay.Span{From: s.From, To: s.To}}
}

func (r privacyReplays) ExportPerson(ctx context.Context, projectID string, p privacy.Person, spans []privacy.Span, emit privacy.Emit) (unreadable int64, err error) {
	parts := []replay.Part{{Person: replay.Person(p), AnyUser: true}}
	for _, s := range spans {
		parts = append(parts, partOf(s))
	}
	told := map[string]bool{} // a session may have chunks in several parts
	for _, part := range parts {
		err := r.service.ExportPerson(ctx, projectID, part, func(of string, c replay.Chunk, events io.WriterTo) error {
			if !told[of] {
				told[of] = true
				if err := emit("replay_session", exportedSession{of}); err != nil {
					return err
				}
			}
			if events == nil {
				unreadable++
			}
			return emitChunk(of, &c, events, emit)
		})
		if err != nil {
			return unreadable, err
		}
	}
	return unreadable, nil
}

// exportedSession comes before the chunks of a session.
type exportedSession struct {
	SessionID string `json:"session_id"`
}

// exportedChunk is a chunk with the events, which are null if they cannot be
// read.
type exportedChunk struct {
	SessionID  string          `json:"session_id"`
	Chunk      int64           `json:"chunk"`
	ReceivedAt string          `json:"received_at"`
	Events     json.RawMessage `json:"events"`
	Unreadable bool            `json:"unreadable,omitempty"`
}

func emitChunk(session string, c *replay.Chunk, events io.WriterTo, emit privacy.Emit) error {
	out := exportedChunk{SessionID: session, Chunk: c.Chunk, ReceivedAt: api.TimeText(c.ReceivedAt), Unreadable: events == nil}
	if events != nil {
		var text bytes.Buffer
		if _, err := events.WriteTo(&text); err != nil {
			return err
		}
		out.Events = text.Bytes()
	}
	return emit("replay_chunk", out)
}
