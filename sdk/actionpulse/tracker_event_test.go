package actionpulse_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// TestTrackRefusesWhatIntakeWould, and keeps nothing of it.
func TestTrackRefusesWhatIntakeWould(t *testing.T) {
	t.Parallel()
	const id = "018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2"
	deep := map[string]any{}
	for range 62 {
		deep = map[string]any{"d": deep}
	}
	properties := func(v any) actionpulse.Event {
		return actionpulse.Event{Name: "e", UserID: "u", Properties: map[string]any{"p": v}}
	}
	s, h := newIntake(), &heard{}
	tracker := newTracker(t, serverKey, h.options(s))
	for what, c := range map[string]struct {
		event actionpulse.Event
		code  api.RejectCode
	}{
		"no name":           {actionpulse.Event{UserID: "u"}, api.RejectInvalidEvent},
		"a blank name":      {actionpulse.Event{Name: " \u00a0", UserID: "u"}, api.RejectInvalidEvent},
		"a control":         {actionpulse.Event{Name: "a\nb", UserID: "u"}, api.RejectInvalidEvent},
		"a long name":       {actionpulse.Event{Name: strings.Repeat("é", 201), UserID: "u"}, api.RejectInvalidEvent},
		"not UTF-8":         {actionpulse.Event{Name: "\xff", UserID: "u"}, api.RejectInvalidEvent},
		"no UUID":           {actionpulse.Event{ID: "order-42", Name: "e", UserID: "u"}, api.RejectInvalidEventID},
		"the nil UUID":      {actionpulse.Event{ID: "00000000-0000-0000-0000-000000000000", Name: "e", UserID: "u"}, api.RejectInvalidEventID},
		"the max UUID":      {actionpulse.Event{ID: "ffffffffffffffffffffffffffffffff", Name: "e", UserID: "u"}, api.RejectInvalidEventID},
		"a UUID in quotes":  {actionpulse.Event{ID: `"` + id + `"`, Name: "e", UserID: "u"}, api.RejectInvalidEventID},
		"another urn":       {actionpulse.Event{ID: "urn:uuix:" + id, Name: "e", UserID: "u"}, api.RejectInvalidEventID},
		"nobody":            {actionpulse.Event{Name: "e"}, api.RejectMissingIdentity},
		"a long anon id":    {actionpulse.Event{Name: "e", AnonID: strings.Repeat("a", 201)}, api.RejectInvalidAnonID},
		"a long user id":    {actionpulse.Event{Name: "e", UserID: strings.Repeat("a", 201)}, api.RejectInvalidUserID},
		"a long session id": {actionpulse.Event{Name: "e", UserID: "u", SessionID: strings.Repeat("a", 201)}, api.RejectInvalidSessionID},
		"a time":            {actionpulse.Event{Name: "e", UserID: "u", Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, api.RejectInvalidTimestamp},
		"a channel":         {properties(make(chan int)), api.RejectInvalidProperties},
		"not a number":      {properties(math.NaN()), api.RejectInvalidProperties},
		"beyond a double":   {properties(json.Number("-1e999")), api.RejectInvalidProperties},
		"a NUL":             {properties(`\` + "\x00"), api.RejectInvalidProperties},
		"deep":              {actionpulse.Event{Name: "e", UserID: "u", Context: deep}, api.RejectInvalidEvent},
		"large":             {properties(strings.Repeat("x", actionpulse.MaxItemBytes)), api.RejectEventTooLarge},
	} {
		_, err := tracker.Track(c.event)
		if got, ok := errors.AsType[*actionpulse.InvalidEventError](err); !ok || got.Code != c.code {
			t.Errorf("%s: got %v, want %s", what, err, c.code)
		}
	}
	for _, i := range []actionpulse.Identity{{UserID: "u"}, {AnonID: "a"}, {AnonID: "a", UserID: strings.Repeat("u", 201)}} {
		if err := tracker.Identify(i); err == nil {
			t.Errorf("identify took %+v", i)
		}
		if err := tracker.Alias(i.AnonID, i.UserID); err == nil {
			t.Errorf("alias took %+v", i)
		}
	}
	closeNow(t, tracker)
	if len(s.sent()) != 0 {
		t.Errorf("sent %+v", s.sent())
	}
}

// TestTrackTakesAllFormsOfAUUID, and returns the one it is stored under.
func TestTrackTakesAllFormsOfAUUID(t *testing.T) {
	t.Parallel()
	const id = "018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2"
	s, h := newIntake(), &heard{}
	tracker := newTracker(t, serverKey, h.options(s))
	forms := []string{id, strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "{" + id + "}", "URN:uuid:" + id}
	for _, form := range forms {
		if got, err := tracker.Track(actionpulse.Event{ID: form, Name: "e", UserID: "u"}); err != nil || got != id {
			t.Errorf("%s: %s, %v", form, got, err)
		}
	}
	closeNow(t, tracker)
	if s.count(id) != len(forms) || tracker.Stats().Duplicates != int64(len(forms)-1) {
		t.Errorf("stored %v, %+v", s.stored, tracker.Stats())
	}
}

// TestTrackTakesOddValues that only look like what intake refuses.
func TestTrackTakesOddValues(t *testing.T) {
	t.Parallel()
	s, h := newIntake(), &heard{}
	tracker := newTracker(t, serverKey, h.options(s))
	for _, v := range []any{`\u0000`, "<&>", `"{[`, -1e308, json.Number("1e-999"), []any{nil, true, map[string]any{}}} {
		if _, err := tracker.Track(actionpulse.Event{Name: "e", AnonID: "a", Properties: map[string]any{"v": v}}); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	closeNow(t, tracker)
	if len(s.sent()) != 1 || !strings.Contains(s.sent()[0].body, `{"v":"<&>"}`) {
		t.Errorf("sent %+v", s.sent())
	}
}

func TestNewTrackerRefuses(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		server, key string
		options     actionpulse.TrackerOptions
	}{
		"no URL":           {"pulse.example", serverKey, actionpulse.TrackerOptions{}},
		"no key":           {"https://pulse.example", "", actionpulse.TrackerOptions{}},
		"a project key":    {"https://pulse.example", "apk_x", actionpulse.TrackerOptions{}},
		"a CI/CD token":    {"https://pulse.example", "apc_x", actionpulse.TrackerOptions{}},
		"an access token":  {"https://pulse.example", "apt_x", actionpulse.TrackerOptions{}},
		"a line break":     {"https://pulse.example", "aps_\n", actionpulse.TrackerOptions{}},
		"an unknown kind":  {"https://pulse.example", "aps_x", actionpulse.TrackerOptions{KeyKind: "project"}},
		"too many":         {"https://pulse.example", serverKey, actionpulse.TrackerOptions{MaxBatch: 1001}},
		"too large":        {"https://pulse.example", serverKey, actionpulse.TrackerOptions{MaxBytes: 1<<20 + 1}},
		"a negative bound": {"https://pulse.example", serverKey, actionpulse.TrackerOptions{MaxPending: -1}},
	} {
		if tracker, err := actionpulse.NewTracker(c.server, c.key, c.options); err == nil {
			t.Errorf("%s was taken", what)
			closeNow(t, tracker)
		}
	}
}

// TestLegacyKeysMayLookLikeAnything.
func TestLegacyKeysMayLookLikeAnything(t *testing.T) {
	t.Parallel()
	s, h := newIntake(), &heard{}
	o := h.options(s)
	o.KeyKind = actionpulse.KeyLegacy
	tracker := newTracker(t, "apk_imported", o)
	track(t, tracker, "e")
	closeNow(t, tracker)
	if len(s.sent()) != 1 || s.sent()[0].key != "Bearer apk_imported" {
		t.Errorf("sent %+v", s.sent())
	}
	if kind, err := actionpulse.KindOfKey("anything"); err != nil || kind != actionpulse.KeyLegacy {
		t.Errorf("%s, %v", kind, err)
	}
}
