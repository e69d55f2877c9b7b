package judgeclient

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// seen is what a test wants to know of a request.
type seen struct {
	IDs, Times []string
	Facts      int
	Credential Credential
	Problem    bool
}

func look(p *Params, r *http.Request) seen {
	body, err := readBody(r)
	request := describe(p, r, body)
	out := seen{Credential: request.Credential, Problem: err != nil || request.Problem != ""}
	facts := map[string]bool{}
	for _, item := range request.Items {
		out.IDs, out.Times = append(out.IDs, item.ID), append(out.Times, item.TS)
		facts[item.Fact] = true
	}
	out.Facts = len(facts)
	return out
}

func TestAdapters(t *testing.T) {
	t.Parallel()
	told := Generic
	told.ItemsPointer, told.ID, told.TS, told.Ignore = "/data/0x~1", "uid", "at", []string{"sent"}
	for _, c := range []struct {
		name       string
		api        API
		path, body string
		want       seen
	}{
		{
			"ours", ActionPulse, "/v1/track", `{"events": [{"event_id": "a", "event": "x", "ts": 5}, {"event_id": null, "event": "x"}, {"event": "y"}]}`,
			seen{IDs: []string{"a", "", ""}, Times: []string{"5", "", ""}, Facts: 3, Credential: Unknown},
		},
		{
			"ours, another path", ActionPulse, "/v1/identify", `{"anon_id": "a", "user_id": "b"}`,
			seen{Credential: Unknown},
		},
		{
			"ours, broken", ActionPulse, "/v1/track", `{"events": 7}`,
			seen{Credential: Unknown, Problem: true},
		},
		{
			"segment", Segment, "/v1/batch", `{"writeKey": "` + Secrets[ServerKey] + `", "batch": [{"messageId": "m", "timestamp": "t", "event": "x", "context": {"n": 1}}]}`,
			seen{IDs: []string{"m"}, Times: []string{`"t"`}, Facts: 1, Credential: ServerKey},
		},
		{
			"posthog", PostHog, "/batch/", `{"api_key": "` + Secrets[BrowserToken] + `", "batch": [{"uuid": "u", "event": "x", "distinct_id": "d"}]}`,
			seen{IDs: []string{"u"}, Times: []string{""}, Facts: 1, Credential: BrowserToken},
		},
		{
			"told", told, "/anything", `{"data": {"0x/": [{"uid": 1, "at": 2, "sent": 3, "n": 4}, {"uid": 5, "at": 6, "sent": 7, "n": 4.0}]}}`,
			seen{IDs: []string{"1", "5"}, Times: []string{"2", "6"}, Facts: 2, Credential: Unknown},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &Params{Profile: Events, API: c.api}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body))
			if diff := cmp.Diff(c.want, look(p, r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFactsIgnore: what may differ between attempts makes no other fact.
func TestFactsIgnore(t *testing.T) {
	t.Parallel()
	api := Generic
	api.ID, api.TS, api.Ignore = "uid", "at", []string{"sent"}
	facts := map[string]bool{}
	for _, body := range []string{`[{"n": {"a": 1, "b": 2}, "uid": 1, "at": 1, "sent": 1}]`, `[{"uid": 2, "at": 2, "sent": 2, "n": {"b": 2, "a": 1}}]`} {
		items, err := api.items([]byte(body))
		if err != nil || len(items) != 1 {
			t.Fatalf("%v, %v", items, err)
		}
		facts[items[0].Fact] = true
	}
	if len(facts) != 1 {
		t.Errorf("one fact is taken for %d", len(facts))
	}
}

func TestReadsEncodings(t *testing.T) {
	t.Parallel()
	const body = `{"events": [{"event_id": "a", "event": "x"}]}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(body)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		encoding string
		body     []byte
		problem  bool
	}{
		{"", []byte(body), false},
		{"gzip", zipped.Bytes(), false},
		{"", zipped.Bytes(), false},
		{"zstd", encoder.EncodeAll([]byte(body), nil), false},
		{"gzip", []byte(body), true},
		{"br", []byte(body), true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/track", bytes.NewReader(c.body))
		r.Header.Set("Content-Encoding", c.encoding)
		r.Header.Set("Authorization", "Bearer "+Secrets[ServerKey])
		got := look(&Params{Profile: Events, API: ActionPulse}, r)
		if got.Problem != c.problem || !c.problem && (got.Facts != 1 || got.Credential != ServerKey) {
			t.Errorf("%q: %+v", c.encoding, got)
		}
	}
}

func TestKeysFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile Profile
		keys    []string
		ok      bool
	}{
		{Keyed, []string{"k"}, true},
		{Keyed, []string{strings.Repeat("ü", 190)}, true},
		{Keyed, []string{strings.Repeat("ü", 191)}, false},
		{Keyed, []string{"a\tb"}, false},
		{Keyed, []string{"a\xff"}, false},
		{Keyed, []string{"a", "a"}, false},
		{Keyed, []string{""}, false},
		{Keyed, nil, false},
		{Deploy, []string{"12345678"}, true},
		{Deploy, []string{"1234567"}, false},
		{Deploy, []string{"1234,5678"}, false},
		{Deploy, []string{"1234 5678"}, false},
		{Deploy, []string{strings.Repeat("x", 129)}, false},
	} {
		p := &Params{Profile: c.profile, API: ActionPulse}
		if got := p.faultOfKeys(c.keys); (got == "") != c.ok {
			t.Errorf("%s, %q: %q", c.profile, c.keys, got)
		}
	}
}

func TestIDFaults(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2":          true,
		"018F9F5E-7C1A-7000-8000-3C5AB3E0A1B2":          true,
		"018f9f5e7c1a700080003c5ab3e0a1b2":              false,
		"{018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2}":        false,
		"urn:uuid:018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2": false,
		"00000000-0000-0000-0000-000000000000":          false,
		"ffffffff-ffff-ffff-ffff-ffffffffffff":          false,
		"":                                              false, "event-1": false,
	} {
		if got := faultOfID(id); (got == "") != ok {
			t.Errorf("%q: %q", id, got)
		}
	}
}
