package judgeserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeserver"
	"github.com/actionpulse/actionpulse/internal/lab/report"
)

const atOnce = 8

// generic describes the shop.
func generic(url string) judgeserver.Generic {
	return judgeserver.Generic{
		URL: judgeserver.Template(url), Header: http.Header{"Content-Type": {"application/json"}}, LongKey: 101,
		Body: `{"order":"{{unit}}","amount":5}`, Other: `{"order":"{{unit}}","amount":6}`, Refused: `{"order":"{{unit}}","amount":-1}`,
		ID: "/id", CountURL: judgeserver.Template(url + "?order={{unit}}"), CountAt: "/orders",
	}
}

// judge tries a shop.
func judge(t *testing.T, s *shop, change func(*judgeserver.Generic, *judgeserver.Options)) (*report.Report, error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	g := generic(server.URL + "/orders")
	o := judgeserver.Options{
		Subject: "the shop", AtOnce: s.atOnce, Seed: 1, Name: "t", Restart: s.restart, Progress: s,
		Sleep: func(context.Context, time.Duration) error { return nil },
	}
	if change != nil {
		change(&g, &o)
	}
	endpoint, err := g.Endpoint()
	if err != nil {
		t.Fatal(err)
	}
	o.Endpoints = []judgeserver.Endpoint{endpoint}
	return judgeserver.Judge(t.Context(), o)
}

// verdicts returns the ids of the checks with a verdict.
func verdicts(r *report.Report, v report.Verdict) []string {
	var ids []string
	for _, c := range r.Checks {
		if c.Verdict == v {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// TestJudge: a server that keeps its promise passes all, and each flaw is found
// by the trials that it concerns and by no other.
func TestJudge(t *testing.T) {
	t.Parallel()
	for flaw, want := range map[string][]string{
		"":           nil,
		busyLoser:    nil,
		insertLast:   {"race-one-object"},
		failLoser:    {"race-honest-answers"},
		vagueLoser:   {"race-honest-answers"},
		forgetful:    {"restart-keeps-key", "restart-under-load"},
		anyBody:      {"other-body-refused"},
		otherWork:    {"other-body-refused"},
		firstKey:     {"key-doubled"},
		noKey:        {"key-absent"},
		longKeys:     {"key-too-long"},
		keepsRefusal: {"refused-leaves-key"},
		bodyIsKey:    {"other-body-refused", "other-key-other-object"},
		halfBody:     {"cut-request"},
		marksAll:     {"repeat-marked"},
		naive: {
			"repeat-same-object", "race-one-object", "lost-answer", "doubled-request", "lost-request", "cut-request", "other-body-refused",
			"key-absent", "key-doubled", "key-too-long", "refused-leaves-key", "restart-keeps-key", "restart-under-load",
		},
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			r, err := judge(t, newShop(flaw, atOnce), nil)
			if err != nil {
				t.Fatal(err)
			}
			failed := verdicts(r, report.Fail)
			if !slices.Equal(failed, want) || len(verdicts(r, report.Inconclusive)) > 0 {
				t.Errorf("found %q, want %q", failed, want)
			}
			if len(r.Checks) != 16 || flaw == "" && len(verdicts(r, report.Pass)) != 16 {
				t.Errorf("%d checks, passed: %q", len(r.Checks), verdicts(r, report.Pass))
			}
			for _, c := range r.Checks {
				if len(c.Evidence) == 0 || c.Title == "" || c.Source == "" {
					t.Errorf("%s: nothing is said: %+v", c.ID, c)
				}
				if t.Failed() && c.Verdict != report.Pass {
					t.Logf("%s: %s\n%s", c.ID, c.Verdict, strings.Join(c.Evidence, "\n"))
				}
			}
		})
	}
}

// TestJudgeBlind: what cannot be seen is not passed.
func TestJudgeBlind(t *testing.T) {
	t.Parallel()
	r, err := judge(t, newShop(unmarked, 4), func(g *judgeserver.Generic, o *judgeserver.Options) {
		g.CountURL, g.Other, g.Refused, g.LongKey, g.KeyOptional, o.Restart = "", "", "", 0, true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	blind := []string{"repeat-marked", "other-body-refused", "key-absent", "key-too-long", "refused-leaves-key", "restart-keeps-key", "restart-under-load"}
	if got := verdicts(r, report.NotTested); !slices.Equal(got, blind) {
		t.Errorf("not tested: %q", got)
	}
	if got := verdicts(r, report.Inconclusive); !slices.Equal(got, []string{"key-doubled"}) || r.Failed() {
		t.Errorf("inconclusive: %q, failed: %q", got, verdicts(r, report.Fail))
	}
	// Without ids nothing is known of the number of objects.
	r, err = judge(t, newShop("", 4), func(g *judgeserver.Generic, _ *judgeserver.Options) { g.CountURL, g.ID = "", "" })
	if err != nil {
		t.Fatal(err)
	}
	if got := verdicts(r, report.Pass); !slices.Equal(got, []string{"repeat-marked", "race-honest-answers"}) || r.Failed() {
		t.Errorf("passed: %q, failed: %q", got, verdicts(r, report.Fail))
	}
}

// TestJudgeNothing: a server that refuses the first request is not judged, and
// neither is one whose answers are not what they are said to be.
func TestJudgeNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flaw   string
		change func(*judgeserver.Generic, *judgeserver.Options)
		want   string
	}{
		{strict, nil, "403"},
		{"", func(g *judgeserver.Generic, _ *judgeserver.Options) { g.ID = "/order/id" }, "does not name the object"},
		{"", func(g *judgeserver.Generic, _ *judgeserver.Options) { g.CountAt = "/items" }, "nothing at"},
		{"", func(g *judgeserver.Generic, _ *judgeserver.Options) { g.CountURL += "-none" }, "0 objects"},
	} {
		if r, err := judge(t, newShop(c.flaw, 2), c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, %v", r, err)
		}
	}
	for _, g := range []judgeserver.Generic{{}, {URL: "http://127.0.0.1", ID: "id"}} {
		if _, err := g.Endpoint(); err == nil {
			t.Errorf("%+v is an operation", g)
		}
	}
}

// TestJudgeStops: ctx ends the trials.
func TestJudgeStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := newShop("", 2)
	server := httptest.NewServer(s)
	defer server.Close()
	endpoint, err := generic(server.URL).Endpoint()
	if err != nil {
		t.Fatal(err)
	}
	restart := func(context.Context) error {
		cancel()
		return nil
	}
	r, err := judgeserver.Judge(ctx, judgeserver.Options{Endpoints: []judgeserver.Endpoint{endpoint}, AtOnce: 2, Restart: restart})
	if err == nil || r != nil {
		t.Errorf("got %v, %v", r, err)
	}
}
