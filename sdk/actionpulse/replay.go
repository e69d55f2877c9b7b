package actionpulse

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// SendReplay sends a chunk of a session's recording: events of rrweb, which are
// kept byte for byte. It is repeated like an event with an id: a chunk is known
// by its session and number for ever, and the first wins. A repeat whose events
// differ is told of by Conflict, and is not stored.
func (i *Intake) SendReplay(ctx context.Context, chunk api.ReplayRequest) (*api.ReplayResponse, error) {
	if chunk.Events == nil {
		chunk.Events = []json.RawMessage{}
	}
	c := changes("replay", http.MethodPost, "/v1/replay").with(chunk)
	c.kind = retry.Event
	answer, r, err := exchange[replayAnswer](ctx, i.link, c)
	if err != nil {
		return nil, err
	}
	if answer.Duplicate == nil {
		return nil, c.unreadable(r, errSaysNothing)
	}
	return &api.ReplayResponse{Duplicate: *answer.Duplicate, Conflict: answer.Conflict}, nil
}

// replayAnswer tells an answer that says false from one that says nothing.
type replayAnswer struct {
	Duplicate *bool `json:"duplicate"`
	Conflict  bool  `json:"conflict"`
}

// Replays are the session recordings of a project.
type Replays struct{ link *link }

const (
	replaysPath = projectPath + "/replays"
	replayPath  = replaysPath + "/{session_id}"
)

// ListReplays says which recordings are asked for; what is empty does not
// narrow.
type ListReplays struct {
	Page
	// Person is a user's id or an anonymous one.
	Person string
	// From and To bound when sessions have started; To is not included.
	From, To time.Time
	// MinDuration is the shortest that is shown.
	MinDuration time.Duration
	// HasErrors shows those with errors, or those without.
	HasErrors *bool
}

// List returns a page of recordings, the one first received last first.
func (r *Replays) List(ctx context.Context, projectID string, p ListReplays) (*api.List[api.Replay], error) {
	q := p.Page.query()
	setText(q, "person", p.Person)
	setTime(q, "from", p.From)
	setTime(q, "to", p.To)
	if p.MinDuration != 0 {
		q.Set("min_duration", strconv.FormatFloat(p.MinDuration.Seconds(), 'f', -1, 64))
	}
	setBool(q, "has_errors", p.HasErrors)
	return list[api.Replay](ctx, r.link, reads("listReplays", replaysPath, projectID).ask(q))
}

// setBool adds a parameter that may be absent.
func setBool(q url.Values, name string, value *bool) {
	if value != nil {
		q.Set(name, strconv.FormatBool(*value))
	}
}

// All yields every recording from p on.
func (r *Replays) All(ctx context.Context, projectID string, p ListReplays) iter.Seq2[api.Replay, error] {
	return all(p.Page, func(page Page) (*api.List[api.Replay], error) {
		p := p
		p.Page = page
		return r.List(ctx, projectID, p)
	})
}

// Get returns a recording with its chunks; not_found if there is none.
func (r *Replays) Get(ctx context.Context, projectID, sessionID string) (*api.ReplayDetail, error) {
	return fetch[api.ReplayDetail](ctx, r.link, reads("getReplay", replayPath, projectID, sessionID))
}

// errNoEvents is why an answer is not the events of a chunk.
var errNoEvents = errors.New("it is no JSON array")

// Chunk returns the events of a chunk, a JSON array, byte for byte as they were
// sent; not_found if there is none.
func (r *Replays) Chunk(ctx context.Context, projectID, sessionID string, chunk int64) (json.RawMessage, error) {
	c := reads("getReplayChunk", replayPath+"/chunks/{chunk}", projectID, sessionID, strconv.FormatInt(chunk, 10))
	answer, err := r.link.send(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer.body, new([]json.RawMessage)); err != nil {
		return nil, c.unreadable(answer, errors.Join(errNoEvents, err))
	}
	return answer.body, nil
}

// Delete deletes a recording. Its chunks stay known: a repeat of one does not
// bring it back.
func (r *Replays) Delete(ctx context.Context, projectID, sessionID string) error {
	return perform(ctx, r.link, changes("deleteReplay", http.MethodDelete, replayPath, projectID, sessionID))
}
