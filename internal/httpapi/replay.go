package httpapi

import (
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/replay"
)

// Replays takes in session recordings and gives them back. A body is not used
// any more once Add has returned, and its context is not cancelled when the
// client leaves. The errors are described where replay.Service has these
// methods.
type Replays interface {
	Add(ctx context.Context, src replay.Source, body []byte) (replay.Receipt, error)
	List(ctx context.Context, q replay.ListQuery) ([]replay.Session, error)
	Get(ctx context.Context, projectID, sessionID string) (replay.Recording, error)
	Open(ctx context.Context, projectID, sessionID string, chunk int64) (io.WriterTo, error)
	Delete(ctx context.Context, at replay.Place) error
}

// replayRoutes are those of session recordings.
func replayRoutes() []route {
	ingest := access{kinds: []credential.Kind{credential.Browser, credential.Server, credential.Legacy}, keyInURL: true, cors: true}
	viewer := access{kinds: []credential.Kind{credential.Access}, role: roleViewer}
	admin := access{kinds: []credential.Kind{credential.Access}, role: roleAdmin}
	const all = "/api/v1/projects/{id}/replays"
	const one = all + "/{session_id}"
	return []route{
		{"POST", "/v1/replay", ingest, beacon(replay.MaxBody), takesIn, replayOperation, (*service).addReplay},
		{"GET", all, viewer, body{}, reads, listReplaysOperation, (*service).listReplays},
		{"GET", one, viewer, body{}, reads, getReplayOperation, (*service).getReplay},
		{"GET", one + "/chunks/{chunk}", viewer, body{}, reads, getReplayChunkOperation, (*service).getReplayChunk},
		{"DELETE", one, admin, body{}, mutates, deleteReplayOperation, (*service).deleteReplay},
	}
}

var replayOperation = operation{
	id: "replay", tag: tagIntake, summary: "Send a chunk of a session recording",
	description: "A 202 comes once the chunk is on disk. A chunk is known by project, session and number, for ever: also after it was deleted. " +
		"The first wins; a repeat says duplicate, and conflict if its events differ in value.",
	request: api.ReplayRequest{},
	errors:  codes(api.CodeQuotaExceeded, api.CodeTrialQuotaExceeded),
	replies: []reply{{status: http.StatusAccepted, doc: "The chunk is on disk, or was there.", body: api.ReplayResponse{}}},
}

// addReplay takes a chunk in: 202 once it is on disk.
func (s *service) addReplay(x *exchange) (answer, error) {
	src := replay.Source{ProjectID: x.caller.ProjectID, OrganizationID: x.caller.OrganizationID}
	r, err := s.Replays.Add(intakeContext(x), src, x.body.data)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, api.ReplayResponse{Duplicate: r.Duplicate, Conflict: r.Conflict})
}

// sessionParam is a session's id in the path.
func sessionParam() param {
	return pathText("session_id", "The session's id, path-escaped: 1 to 200 characters, / as %2F.")
}

var listReplaysOperation = operation{
	id: "listReplays", tag: tagReplays, summary: "List session recordings, the one first received last first",
	params: pageParams(
		idParam("id", "The project."),
		textParam("person", "Sessions with a chunk of this user or anonymous id."),
		textParam("from", "Sessions that started at this time or later, as in RFC 3339."),
		textParam("to", "Sessions that started before this time, as in RFC 3339."),
		textParam("min_duration", "Sessions that lasted so many seconds or longer."),
		textParam("has_errors", "true: sessions with errors; false: those without."),
	),
	replies: replyOK("A page of recordings.", api.List[api.Replay]{}),
}

func (s *service) listReplays(x *exchange) (answer, error) {
	q, limit, err := x.replayQuery()
	if err != nil {
		return answer{}, err
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	q.ProjectID = p.ID
	all, err := s.Replays.List(x.r.Context(), q)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, limit, replayOf, func(r *replay.Session) string { return strconv.FormatInt(r.Number, 10) })
}

// replayQuery reads the parameters of the list, and how many are shown of what
// is asked for.
func (x *exchange) replayQuery() (q replay.ListQuery, limit int, err error) {
	p, before, err := x.numberPage()
	if err != nil {
		return q, 0, err
	}
	q.Before, q.Limit = before, p.limit+1
	if q.Person, err = x.text("person"); err != nil {
		return q, 0, err
	}
	if q.From, err = x.time("from"); err != nil {
		return q, 0, err
	}
	if q.To, err = x.time("to"); err != nil {
		return q, 0, err
	}
	if q.MinDuration, err = x.seconds("min_duration"); err != nil {
		return q, 0, err
	}
	q.HasErrors, err = x.choice("has_errors")
	return q, p.limit, err
}

// maxSeconds bounds a length of time in the query string: a hundred years.
const maxSeconds = 100 * 366 * 24 * 3600

// seconds reads an optional length of time; 0 if it is absent. It refuses with
// validation_failed.
func (x *exchange) seconds(name string) (time.Duration, error) {
	text, err := x.text(name)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > maxSeconds {
		return 0, fault.Field(name, "%s must be a number of seconds", name)
	}
	return time.Duration(n * float64(time.Second)), nil
}

// choice reads an optional true or false; nil if it is absent. It refuses with
// validation_failed.
func (x *exchange) choice(name string) (*bool, error) {
	text, err := x.text(name)
	if err != nil {
		return nil, err
	}
	switch text {
	case "":
		return nil, nil
	case "true":
		return new(true), nil
	case "false":
		return new(false), nil
	default:
		return nil, fault.Field(name, "%s must be true or false", name)
	}
}

var getReplayOperation = operation{
	id: "getReplay", tag: tagReplays, summary: "Get a session recording with its chunks",
	params:  []param{idParam("id", "The project."), sessionParam()},
	replies: replyOK("The recording.", api.ReplayDetail{}),
}

func (s *service) getReplay(x *exchange) (answer, error) {
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	r, err := s.Replays.Get(x.r.Context(), p.ID, x.r.PathValue("session_id"))
	if err != nil {
		return answer{}, err
	}
	out := api.ReplayDetail{Replay: replayOf(&r.Session), Chunks: make([]api.ReplayChunk, len(r.Chunks)), Gaps: r.Gaps, GapCount: r.GapCount}
	if out.Gaps == nil {
		out.Gaps = []int64{}
	}
	for i, c := range r.Chunks {
		out.Chunks[i] = api.ReplayChunk{Chunk: c.Chunk, Bytes: c.Bytes, ReceivedAt: api.TimeText(c.ReceivedAt)}
	}
	return jsonAnswer(http.StatusOK, out)
}

var getReplayChunkOperation = operation{
	id: "getReplayChunk", tag: tagReplays, summary: "Get the events of a chunk, byte for byte as they were sent",
	description: "If it fails on the way the connection is cut: an answer that is complete ends properly. Where several servers share a database, but no bucket, " +
		"only the one in whose folder recordings are kept has the events; the others refuse with conflict.",
	params:  []param{idParam("id", "The project."), sessionParam(), pathText("chunk", "The number of the chunk.")},
	replies: replyOK("The events.", []map[string]any{}),
	errors:  codes(api.CodeConflict),
}

func (s *service) getReplayChunk(x *exchange) (answer, error) {
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	chunk, err := strconv.ParseInt(x.r.PathValue("chunk"), 10, 64)
	if err != nil {
		return answer{}, fault.New(api.CodeNotFound, "there is no such chunk")
	}
	events, err := s.Replays.Open(x.r.Context(), p.ID, x.r.PathValue("session_id"), chunk)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, contentType: jsonType[0], stream: func(w io.Writer) error {
		_, err := events.WriteTo(w)
		return err
	}}, nil
}

var deleteReplayOperation = operation{
	id: "deleteReplay", tag: tagReplays, summary: "Delete a session recording",
	description: "What was received stays known: a repeat of a chunk is a duplicate and does not bring it back. A chunk that was never received is new. " +
		"While a privacy job about somebody whom a chunk names is not finished, it is refused with privacy_job_active.",
	params:  []param{idParam("id", "The project."), sessionParam()},
	replies: replyNothing("It is deleted."),
	errors:  codes(api.CodePrivacyJobActive),
}

func (s *service) deleteReplay(x *exchange) (answer, error) {
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Replays.Delete(x.r.Context(), replay.Place{
		Actor: s.actor(x), OrganizationID: p.OrganizationID, ProjectID: p.ID, SessionID: x.r.PathValue("session_id"),
	}))
}

// replayOf is a session as it is sent.
func replayOf(r *replay.Session) api.Replay {
	out := api.Replay{
		SessionID: r.SessionID, UserID: api.OptionalText(r.Person.UserID), AnonID: api.OptionalText(r.Person.AnonID),
		StartedAt: api.TimeText(r.StartedAt), EndedAt: api.TimeText(r.EndedAt), Duration: r.EndedAt.Sub(r.StartedAt).Seconds(),
		Pages: r.Pages, Errors: r.Errors, Clicks: r.Clicks, Events: r.Events, ChunkCount: r.Chunks, Bytes: r.Bytes,
	}
	if out.Person = out.UserID; out.Person == nil {
		out.Person = out.AnonID
	}
	return out
}
