package actionpulse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// resetter hands requests on to a server, and resets the connection in place of
// each answer that is to be lost.
type resetter struct {
	to   string
	lose atomic.Int32
}

func (p *resetter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(err)
	}
	request.Header = r.Header
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		panic(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if p.lose.Add(-1) >= 0 {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_ = connection.(*net.TCPConn).SetLinger(0)
		_ = connection.Close()
		return
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// testReset: connections that are reset after the commit cost neither a
// movement nor an execution twice, and a change without a key is not repeated.
func testReset(t *testing.T, r *site) {
	ctx := t.Context()
	proxy := &resetter{to: r.URL}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	c := r.clientsOf(t, s.URL, actionpulse.WithRetry((&hasty{}).policy()))
	proxy.lose.Store(2)
	must(t, func(m *actionpulse.Moved) bool { return m.Replayed && m.Balance.Posted == "5" })(
		c.Customers.TopUp(ctx, "reset", actionpulse.TopUp{CreditType: "main", Amount: "5"}))
	proxy.lose.Store(1)
	hold := actionpulse.NewHold{CreditType: "main", Amount: "2"}
	must(t, func(h *api.HoldAnswer) bool { return h.Balance.Held == "2" })(c.Holds.Place(ctx, "reset", "h", hold))
	proxy.lose.Store(1)
	must(t, func(h *api.HoldAnswer) bool { return h.Balance.Posted == "3" })(c.Holds.Capture(ctx, "reset", "h", actionpulse.Capture{}))
	proxy.lose.Store(1)
	_, err := c.Flows.PublishYAML(ctx, "reset", []byte("steps: []\noutput: 1\n"))
	if e := asError(t, err); e.Applied != actionpulse.AppliedUnknown || e.Attempts != 1 {
		t.Errorf("%+v", e)
	}
	n := 0
	for m, err := range r.Movements.All(ctx, actionpulse.ListMovements{MovementFilter: actionpulse.MovementFilter{Customer: "reset"}}) {
		if n++; err != nil {
			t.Fatal(m, err)
		}
	}
	if n != 2 {
		t.Errorf("%d movements, want the topup and the capture", n)
	}
}

func testFlows(t *testing.T, r *site) {
	ctx := t.Context()
	hello := must(t, anything[[]byte])(os.ReadFile("../../examples/flows/priced.yaml"))
	must(t, func(f *api.Flow) bool { return f.Version == 1 })(r.Flows.PublishYAML(ctx, "priced", hello))
	must(t, anything[*actionpulse.Moved])(r.Customers.TopUp(ctx, "eve", actionpulse.TopUp{CreditType: "main", Amount: "20"}))
	run := actionpulse.Execute{Flow: "priced", Customer: "eve", Input: map[string]any{"model": "echo-1", "question": "why?"}}
	first := must(t, func(x *actionpulse.Executed) bool {
		return !x.Replayed && x.Status == "succeeded" && string(x.Output) == `"why?"`
	})(
		r.Executions.Execute(ctx, run, actionpulse.WithKey("order-42:ask")))
	must(t, func(x *actionpulse.Executed) bool {
		return x.Replayed && x.ID == first.ID && x.Charged == first.Charged
	})(
		r.Executions.Execute(ctx, run, actionpulse.WithKey("order-42:ask")))

	begun := must(t, func(x *actionpulse.Executed) bool { return x.ID != first.ID })(r.Executions.Start(ctx, run))
	must(t, func(x *api.Execution) bool { return x.Status == "succeeded" })(r.Executions.Wait(ctx, begun.ID))
	last := actionpulse.ExecutionEvent{}
	for e, err := range r.Executions.Follow(ctx, begun.ID) {
		last = must(t, anything[actionpulse.ExecutionEvent])(e, err)
	}
	if last.Execution == nil || last.Execution.Status != "succeeded" {
		t.Errorf("%+v", last)
	}
	must(t, func(x *api.Trace) bool { return len(x.Steps) == 1 })(r.Executions.Trace(ctx, first.ID))
	must(t, func(c *api.Costs) bool { return len(c.Items) == 1 && c.Items[0].Executions == 2 })(
		r.Operations.Costs(ctx, actionpulse.CostsOf{By: []string{"customer", "flow"}}))

	run.Input = map[string]any{"model": "echo-1", "question": 1}
	done, err := r.Executions.Execute(ctx, run, actionpulse.WithKey("order-43:ask"))
	again, errAgain := r.Executions.Execute(ctx, run, actionpulse.WithKey("order-43:ask"))
	for _, err := range []error{err, errAgain} {
		if e, ok := errors.AsType[*actionpulse.ExecutionError](err); !ok || e.Code != api.CodeInvalidFlowInput || e.ID != done.ID || again.ID != done.ID {
			t.Errorf("%v", err)
		}
	}
	if done.Replayed || !again.Replayed {
		t.Error("the first failure is a replay, or the second is none")
	}
	if _, err := r.Flows.Publish(ctx, "bad", api.FlowDefinition{"output": json.RawMessage(`"${nothing}"`)}); len(asError(t, err).Details.Issues) == 0 {
		t.Error(err)
	}
}

func testMarkers(t *testing.T, r *site) {
	ctx := t.Context()
	content := api.MarkerContent{Version: "1.4.2", TS: new("2026-05-01T12:00:00Z")}
	first := must(t, func(m *actionpulse.DeployMarker) bool { return !m.Replayed })(r.deploy.Create(ctx, content, actionpulse.WithKey("pipeline-1")))
	must(t, func(m *actionpulse.DeployMarker) bool { return m.Replayed && m.ID == first.ID })(
		r.deploy.Create(ctx, content, actionpulse.WithKey("pipeline-1")))
	content.Version = "1.4.3"
	_, err := r.deploy.Create(ctx, content, actionpulse.WithKey("pipeline-1"))
	if c, ok := asError(t, err).Conflict(); !ok || !slices.Equal(c.Differs, []string{"version"}) {
		t.Errorf("%+v, %v", c, err)
	}
	must(t, func(m *api.MarkerOfKey) bool { return m.Items[0].ID == first.ID && m.Key == "pipeline-1" })(
		r.app.Markers.OfKey(ctx, r.project, "pipeline-1"))
	byHand := must(t, anything[*api.Marker])(r.app.Markers.Create(ctx, r.project, content))
	if err := r.app.Markers.Delete(ctx, r.project, byHand.ID); err != nil {
		t.Error(err)
	}
	for m, err := range r.app.Markers.All(ctx, r.project, actionpulse.ListMarkers{Page: actionpulse.Page{Limit: 1}}) {
		if err != nil || m.ID != first.ID {
			t.Errorf("%+v, %v", m, err)
		}
	}
}

// expire answers the requests that carry one access token as if it had expired,
// and hands on the others.
type expire struct{ token string }

func (e *expire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "Bearer "+e.token {
		return http.DefaultTransport.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	refuses(401, "token_expired", "")(w, r)
	return w.Result(), nil
}

func testTokens(t *testing.T, r *site) {
	ctx := t.Context()
	var transport expire
	c := r.clientsOf(t, r.URL, actionpulse.WithTransport(&transport), actionpulse.WithRetry(retry.Policy{MaxAttempts: 1}))
	old := must(t, anything[*api.Tokens])(c.app.Login(ctx, api.Login{Email: r.Setup.Email, Password: r.Setup.Password}))
	transport.token = old.AccessToken
	for range 2 {
		must(t, func(p *api.Project) bool { return p.ID == r.project })(c.app.Projects.Get(ctx, r.project))
	}
	if now := c.app.Tokens(); now.AccessToken == old.AccessToken || now.RefreshToken == old.RefreshToken || now.RefreshToken == "" {
		t.Errorf("the tokens were not replaced: %v", now.ExpiresIn)
	}
	before := c.app.Tokens()
	must(t, func(now *api.Tokens) bool { return *now != before })(c.app.Refresh(ctx, r.Setup.OrganizationID))
	if err := c.app.Logout(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.app.Projects.Get(ctx, r.project); !errors.Is(err, actionpulse.ErrSessionEnded) {
		t.Error(err)
	}
	_, err := c.app.Login(ctx, api.Login{Email: r.Setup.Email, Password: "hunter-22"})
	if actionpulse.CodeOf(err) != api.CodeInvalidCredentials || holds(err, "hunter-22") {
		t.Error(err)
	}
}

func testIntake(t *testing.T, r *site) {
	ctx := t.Context()
	c := must(t, anything[*actionpulse.Client])(actionpulse.New(r.URL, r.Setup.ServerKey))
	batch := api.TrackRequest{Events: []api.TrackItem{
		{EventID: new(uuid.NewString()), Event: "purchase", UserID: "u"}, {EventID: new("x"), Event: "purchase", UserID: "u"},
	}}
	must(t, func(a *api.TrackResponse) bool {
		return a.Accepted == 1 && a.Rejected[0].Code == api.RejectInvalidEventID
	})(c.Intake.Track(ctx, batch))
	must(t, func(a *api.TrackResponse) bool { return a.Duplicates == 1 })(c.Intake.Track(ctx, batch))
	if err := errors.Join(
		c.Intake.Identify(ctx, api.IdentifyRequest{AnonID: "a", UserID: "u"}), c.Intake.Alias(ctx, api.AliasRequest{AnonID: "b", UserID: "u"}),
	); err != nil {
		t.Error(err)
	}
	asked := api.Question{From: api.TimeText(time.Now().Add(-time.Hour)), To: api.TimeText(time.Now().Add(time.Hour))}
	must(t, anything[*api.TrendAnswer])(r.app.Queries.Trend(ctx, r.project, api.TrendQuery{Question: asked, Interval: "hour", Event: "purchase"}))
	if err := drain(r.app.Queries.AllEvents(ctx, r.project, api.EventsQuery{Limit: 1})); err != nil {
		t.Error(err)
	}
	if _, err := c.Customers.Get(ctx, "ada"); actionpulse.CodeOf(err) != api.CodeForbidden {
		t.Error(err)
	}
}

func testServer(t *testing.T, r *site) {
	must(t, func(s *api.Status) bool { return s.Status == "ok" })(r.Server.Health(t.Context()))
	must(t, func(s *api.Status) bool { return s.Status == "ok" })(r.Server.Ready(t.Context()))
	must(t, func(d json.RawMessage) bool { return bytes.Contains(d, []byte("createDeployMarker")) })(r.Server.OpenAPI(t.Context()))
}
