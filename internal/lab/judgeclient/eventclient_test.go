package judgeclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/test/lab/pipenet"
)

// event is one that the client of these tests has tracked.
type event struct {
	EventID string         `json:"event_id"`
	Event   string         `json:"event"`
	UserID  string         `json:"user_id"`
	TS      string         `json:"ts"`
	Props   map[string]any `json:"properties,omitempty"`
	// Kind is the kind of key it was first sent with.
	Kind string `json:"-"`
}

// eventClient sends events rightly, but for the faults that are set.
type eventClient struct {
	network *pipenet.Network

	newID, newTS, badID, parallel, constant, deaf, stubborn, partOnly bool
	resends, forgets, anyKind, noJitter, notBuffered, hoards          bool
	// unbounded is the longest delay of one that never gives up.
	unbounded time.Duration
	// lateID is how long after the fact its id is made.
	lateID time.Duration
	// repeats are statuses that it repeats though it should not.
	repeats []int
}

// run is one start of a client.
type run struct {
	*eventClient

	ctx  context.Context //nolint:containedctx // a run is what the context is about
	env  map[string]string
	http *http.Client

	mu     sync.Mutex
	output strings.Builder
	outbox []event
}

// variables reads NAME=value lines.
func variables(env []string) map[string]string {
	out := map[string]string{}
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		out[name] = value
	}
	return out
}

// subject is judgeclient.Params.Subject.
func (c *eventClient) subject(ctx context.Context, env []string) judgeclient.Exit {
	transport := c.network.Transport()
	defer transport.CloseIdleConnections()
	r := &run{
		eventClient: c, ctx: ctx, env: variables(env), http: &http.Client{Transport: transport},
	}
	r.load()
	r.track()
	r.send()
	return judgeclient.Exit{Known: ctx.Err() == nil, Output: r.output.String()}
}

func (r *run) file() string { return filepath.Join(r.env["LAB_OUTBOX"], "events.json") }

type stored struct {
	Event event
	Kind  string
}

func (r *run) load() {
	text, err := os.ReadFile(r.file())
	if err != nil || r.forgets {
		return
	}
	var kept []stored
	if err := json.Unmarshal(text, &kept); err != nil {
		panic(err)
	}
	for _, s := range kept {
		s.Event.Kind = s.Kind
		r.outbox = append(r.outbox, s.Event)
	}
}

// save writes the outbox; r.mu is held or not needed.
func (r *run) save() {
	if r.ctx.Err() != nil {
		return // the dead do not write
	}
	var kept []stored
	for _, e := range r.outbox {
		kept = append(kept, stored{e, e.Kind})
	}
	text, err := json.Marshal(kept)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(r.file(), text, 0o600); err != nil {
		panic(err)
	}
}

func (r *run) track() {
	n, err := strconv.Atoi(r.env["LAB_EVENTS"])
	if err != nil {
		panic(err)
	}
	for i := range n {
		r.outbox = append(r.outbox, event{
			EventID: newID(time.Now().Add(r.lateID)), Event: fmt.Sprintf("event %d", i), UserID: "ada",
			TS: time.Now().UTC().Format(time.RFC3339Nano), Kind: r.kind(),
		})
	}
	r.save()
}

// newID is a UUIDv7 of the time within the bubble; the one of package uuid
// remembers times of other bubbles.
func newID(at time.Time) string {
	id := uuid.New()
	id[6] = id[6]&0x0f | 0x70
	for i, ms := 5, at.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		id[i] = byte(ms)
	}
	return id.String()
}

func (r *run) kind() string { return r.env["ACTIONPULSE_KEY"][:3] }

// randomOf is the randomness of a scenario, the same in every run of a test.
func randomOf(env map[string]string) func() float64 {
	var seed [32]byte
	copy(seed[:], env["LAB_PROFILE"]+env["LAB_SCENARIO"])
	var mu sync.Mutex
	random := rand.New(rand.NewChaCha8(seed))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}

// send sends the outbox in batches: one after another, or all at once.
func (r *run) send() {
	size, err := strconv.Atoi(r.env["LAB_BATCH"])
	if err != nil || size == 0 {
		size = 100
	}
	var due []event
	for _, e := range r.outbox {
		if (e.Kind == r.kind() || r.anyKind) && !r.tooOld(e) {
			due = append(due, e)
		}
	}
	var all sync.WaitGroup
	for batch := range slices.Chunk(due, size) {
		if r.parallel {
			all.Go(func() { r.sendBatch(batch) })
		} else if !r.sendBatch(batch) {
			return
		}
	}
	all.Wait()
}

// tooOld says whether an event is past 47 h, by the clock that the lab gives.
func (r *run) tooOld(e event) bool {
	now, err := time.Parse(time.RFC3339Nano, r.env["LAB_NOW"])
	if err != nil {
		now = time.Now()
	}
	at, err := time.Parse(time.RFC3339Nano, e.TS)
	if err != nil {
		panic(err)
	}
	return now.Sub(at) > 47*time.Hour && !r.hoards
}

// sendBatch sends one batch until it is done with, and reports whether it is.
func (r *run) sendBatch(batch []event) bool {
	policy := retry.Policy{MaxAttempts: 8, Delays: retry.Delays{Rand: randomOf(r.env)}}
	if r.unbounded > 0 {
		policy.MaxAttempts, policy.Budget, policy.Delays.Max = 1000, 1000*time.Hour, r.unbounded
	}
	if r.noJitter {
		policy.Delays.Rand = func() float64 { return 0.5 }
	}
	if r.constant {
		policy.Delays.Max = time.Second
	}
	attempt := 0
	answer, err := retry.Do(r.ctx, policy, func(ctx context.Context) (answer, retry.Outcome) {
		attempt++
		if attempt > 1 {
			r.spoil(batch)
			if r.partOnly && len(batch) > 1 {
				batch = batch[1:]
			}
		}
		return r.post(ctx, batch)
	})
	if err != nil {
		r.say("gave up: %v", err)
		if r.notBuffered {
			r.drop(batch)
		}
		return false
	}
	for _, rejected := range answer.Rejected {
		r.say("rejected %d: %s", rejected.Index, rejected.Code)
	}
	if len(answer.Rejected) > 0 && r.resends {
		r.post(r.ctx, batch[:1])
	}
	r.drop(batch)
	return true
}

// spoil does to a batch what a naive client does before another attempt.
func (r *run) spoil(batch []event) {
	for i := range batch {
		if r.newID {
			batch[i].EventID = uuid.NewString()
		}
		if r.newTS {
			batch[i].TS = time.Now().UTC().Format(time.RFC3339Nano)
		}
	}
}

type answer struct {
	Rejected []struct {
		Index int    `json:"index"`
		Code  string `json:"code"`
	} `json:"rejected"`
	Error struct {
		Code string `json:"code"`
	} `json:"error"`
}

// post makes one attempt.
func (r *run) post(ctx context.Context, batch []event) (answer, retry.Outcome) {
	items := slices.Clone(batch)
	for i := range items {
		if r.badID {
			items[i].EventID = strings.ReplaceAll(items[i].EventID, "-", "")
		}
	}
	body, err := json.Marshal(map[string]any{"events": items})
	if err != nil {
		panic(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.env["ACTIONPULSE_URL"]+"/v1/track", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.env["ACTIONPULSE_KEY"])
	response, err := r.http.Do(request)
	if err != nil {
		return answer{}, retry.Outcome{Kind: retry.Event, Err: err}
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, retry.Outcome{Kind: retry.Event, Err: err}
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		a = answer{}
	}
	return a, r.outcome(response, a)
}

// outcome is what the answer means to this client.
func (r *run) outcome(response *http.Response, a answer) retry.Outcome {
	o := retry.Outcome{Kind: retry.Event, Status: response.StatusCode, Code: a.Error.Code, RetryAfter: response.Header.Get("Retry-After")}
	if o.Succeeded() {
		return o
	}
	if r.deaf {
		o.RetryAfter = ""
	}
	if r.stubborn || slices.Contains(r.repeats, o.Status) {
		return retry.Outcome{Kind: retry.Event, Status: 500, Code: "internal"}
	}
	return o
}

func (r *run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.output, format+"\n", args...)
}

func (r *run) drop(batch []event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outbox = slices.DeleteFunc(r.outbox, func(e event) bool {
		return slices.ContainsFunc(batch, func(b event) bool { return b.Event == e.Event })
	})
	r.save()
}
