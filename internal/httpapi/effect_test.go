package httpapi

import (
	"net/http"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// TestWhatARepeatCouldDo: a stock client repeats what X-Should-Retry says, so
// it is false where that could do the work a second time, and only there.
func TestWhatARepeatCouldDo(t *testing.T) {
	var failure error
	at := func(method string, e effect) route {
		return route{
			method: method, path: "/test/" + method + statusText(int(e)), access: access{open: true}, effect: e,
			handle: func(*service, *exchange) (answer, error) {
				return answer{}, failure
			},
		}
	}
	table := []route{
		at("POST", mutates), at("PUT", mutates), at("PATCH", mutates), at("DELETE", mutates),
		at("GET", reads), at("POST", reads), at("POST", takesIn), at("POST", keyed),
	}
	b := setupWithin(t, patience, table...)
	unavailable := fault.New(api.CodeUnavailable, "busy")
	for _, c := range []struct {
		name    string
		failure error
		// mutation and other are the header for the two sorts of routes.
		mutation, other string
		// applied is details.applied of what is not a read; nil if absent.
		applied any
	}{
		{"internal", fault.New(api.CodeInternal, "failed"), "false", "true", nil},
		{"no fault at all", http.ErrBodyNotAllowed, "false", "true", nil},
		{"unavailable", unavailable, "false", "true", "unknown"},
		{"not applied", unavailable.With("applied", false), "true", "true", false},
		{"applied", unavailable.With("applied", true), "false", "true", true},
		{"rate limited", fault.New(api.CodeRateLimited, "later"), "true", "true", nil},
		{"conflict", fault.New(api.CodeConflict, "no"), "false", "false", nil},
	} {
		for _, rt := range table {
			failure = c.failure
			r := b.do(t, request{method: rt.method, path: rt.path})
			e, ok := r.refusal()
			if !ok {
				t.Fatalf("%s: %s", c.name, r.body)
			}
			want := c.other
			if rt.effect == mutates {
				want = c.mutation
			}
			if got := r.header.Get("X-Should-Retry"); got != want {
				t.Errorf("%s, %s: X-Should-Retry %s, want %s", c.name, rt.path, got, want)
			}
			if e.Details["retryable"] != api.Lookup(e.Code).Retryable {
				t.Errorf("%s, %s: retryable %v", c.name, rt.path, e.Details["retryable"])
			}
			applied := c.applied
			if rt.effect == reads && applied == "unknown" {
				applied = nil
			}
			if got := e.Details["applied"]; got != applied {
				t.Errorf("%s, %s: applied %v, want %v", c.name, rt.path, got, applied)
			}
			if _, ok := e.Details["key"]; ok {
				t.Errorf("%s, %s: says something of a key: %v", c.name, rt.path, e.Details)
			}
		}
	}
}

// TestWhatBecameOfTheKey: it is said where it is known, and a key that was
// found free is not called so when work may have been done under it.
func TestWhatBecameOfTheKey(t *testing.T) {
	var failure error
	state := api.KeyFate("")
	b := setupWithin(t, patience, route{
		method: "POST", path: "/test/keyed", access: access{open: true}, effect: keyed,
		handle: func(_ *service, x *exchange) (answer, error) {
			x.keyState = state
			return answer{}, failure
		},
	})
	refused, internal := fault.New(api.CodeNotFound, "no"), fault.New(api.CodeInternal, "failed")
	unavailable := fault.New(api.CodeUnavailable, "busy")
	for _, c := range []struct {
		state   api.KeyFate
		failure error
		want    any
	}{
		{"", refused, nil},
		{api.KeyFree, refused, "free"},
		{api.KeyTaken, refused, "taken"},
		{api.KeyTaken, internal, "taken"},
		{api.KeyTaken, unavailable, "taken"},
		{api.KeyFree, internal, nil},
		{api.KeyFree, unavailable, nil},
		{api.KeyFree, unavailable.With("applied", true), nil},
		{api.KeyFree, unavailable.With("applied", false), "free"},
	} {
		state, failure = c.state, c.failure
		e, ok := b.do(t, request{path: "/test/keyed"}).refusal()
		if got := e.Details["key"]; !ok || got != c.want {
			t.Errorf("%q, %v: key %v, want %v", c.state, c.failure, got, c.want)
		}
	}
}

// TestBeforeTheHandlerNothingIsApplied: an error before the handler was called
// has a known outcome.
func TestBeforeTheHandlerNothingIsApplied(t *testing.T) {
	b := setupWithin(t, patience, thingRoute())
	r := b.do(t, request{path: "/test/things", secret: "broken", body: "{}"})
	wantRefusal(t, r, api.CodeInternal) // X-Should-Retry is true
	held := b.service.bodies.held.Load()
	b.service.bodies.held.Store(b.service.BodyMemory)
	r = b.do(t, request{path: "/test/things", secret: "member", body: "{}"})
	b.service.bodies.held.Store(held)
	if e := wantRefusal(t, r, api.CodeUnavailable); e.Details["applied"] != false {
		t.Errorf("applied %v", e.Details["applied"])
	}
}
