package sendfile_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/sendfile"
	"github.com/actionpulse/actionpulse/retry"
)

const key = "aps_secret"

// trackServer imitates the parts of POST /v1/track that matter to a sender:
// it remembers ids, keeps items in order of their first acceptance and judges
// items one by one.
type trackServer struct {
	*httptest.Server

	// limit is the largest body it takes.
	limit int
	// before, if set, may answer in place of the method.
	before func(w http.ResponseWriter, request int) (done bool)

	mu       sync.Mutex
	requests int
	sizes    []int
	seen     map[string]bool
	stored   []trackItem
	bodies   []string
}

type trackItem struct {
	EventID    *string           `json:"event_id"`
	Event      string            `json:"event"`
	UserID     string            `json:"user_id"`
	Properties map[string]string `json:"properties"`
}

func newTrackServer(t *testing.T) *trackServer {
	t.Helper()
	s := &trackServer{limit: sendfile.MaxBody, seen: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.track))
	t.Cleanup(s.Close)
	return s
}

func refuse(w http.ResponseWriter, code api.Code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(api.Lookup(code).Status)
	body, err := json.Marshal(map[string]any{"error": map[string]any{"code": code, "message": message, "request_id": "r-1"}})
	if err == nil {
		_, err = w.Write(body)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (s *trackServer) track(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.before != nil && s.before(w, s.requests) {
		return
	}
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
		refuse(w, api.CodeInvalidJSON, err.Error())
		return
	}
	switch {
	case r.URL.Path != "/v1/track" || r.Method != http.MethodPost:
		refuse(w, api.CodeNotFound, "no such path")
	case r.Header.Get("Authorization") != "Bearer "+key:
		refuse(w, api.CodeUnauthenticated, "unknown key "+r.Header.Get("Authorization"))
	case len(raw) > s.limit:
		refuse(w, api.CodePayloadTooLarge, "too large")
	default:
		s.accept(w, raw)
	}
}

func (s *trackServer) accept(w http.ResponseWriter, raw []byte) {
	var body struct {
		Events []trackItem `json:"events"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		refuse(w, api.CodeValidationFailed, err.Error())
		return
	}
	s.sizes = append(s.sizes, len(body.Events))
	s.bodies = append(s.bodies, string(raw))
	answer := api.TrackResponse{Rejected: []api.Rejection{}}
	for i, item := range body.Events {
		if code := judge(item); code != "" {
			answer.Rejected = append(answer.Rejected, api.Rejection{Index: i, EventID: item.EventID, Code: code, Message: "so it is"})
			continue
		}
		answer.Accepted++
		if s.seen[*item.EventID] {
			answer.Duplicates++
			continue
		}
		s.seen[*item.EventID] = true
		s.stored = append(s.stored, item)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusAccepted)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func judge(item trackItem) api.RejectCode {
	switch {
	case item.Event == "":
		return api.RejectInvalidEvent
	case item.EventID == nil || uuid.Validate(*item.EventID) != nil:
		return api.RejectInvalidEventID
	case item.UserID == "":
		return api.RejectMissingIdentity
	default:
		return ""
	}
}

// users returns the user ids stored, in order.
func (s *trackServer) users() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	users := make([]string, 0, len(s.stored))
	for _, item := range s.stored {
		users = append(users, item.UserID)
	}
	return users
}

// run is one run of a sender; its zero members have defaults.
type run struct {
	url       string
	key       string
	batchSize int
	attempts  int
	// ctx ends the run; nil means the test's.
	ctx        context.Context //nolint:containedctx // a default that a test can replace
	historical bool
	options    sendfile.Options
	onSent     func(sendfile.Summary)
	// waits and rejected are what the run told of.
	waits    []time.Duration
	rejected []sendfile.Rejected
}

// send runs a sender over some inputs, without really waiting.
func (r *run) send(t *testing.T, inputs ...sendfile.Source) (sendfile.Summary, error) {
	t.Helper()
	if r.ctx == nil {
		r.ctx = t.Context()
	}
	client := &http.Client{
		Transport:     &http.Transport{},
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	s := sendfile.NewSender(sendfile.SenderParams{
		URL: r.url + "/v1/track", Key: cmp.Or(r.key, key), UserAgent: "test", HTTP: client,
		BatchSize: cmp.Or(r.batchSize, 500), Historical: r.historical,
		Retry: retry.Policy{MaxAttempts: r.attempts, Budget: 100 * time.Hour, Sleep: func(ctx context.Context, _ time.Duration) error {
			return context.Cause(ctx)
		}},
		Now:        time.Now,
		OnRejected: func(x sendfile.Rejected) { r.rejected = append(r.rejected, x) },
		OnRetry:    func(x retry.Retry) { r.waits = append(r.waits, x.Wait) },
		OnSent:     r.onSent,
	})
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	err := s.Run(r.ctx, sendfile.Feed(ctx, inputs, r.options))
	return s.Summary(), err
}

// expectUsers compares an order of users with user-0, user-1, ….
func expectUsers(t *testing.T, got []string, n int) {
	t.Helper()
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprintf("user-%d", i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("stored %d items, not the %d of the file once each and in order: %.200s", len(got), n, strings.Join(got, " "))
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*sendfile.RefusedError](err)
	return ok
}
