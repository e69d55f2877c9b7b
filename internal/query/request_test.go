package query

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// recorder is a store that answers nothing and remembers the question.
type recorder struct{ asked any }

func (r *recorder) Trend(_ context.Context, q Trend) ([]Point, State, error) {
	r.asked = q
	return nil, State{}, nil
}

func (r *recorder) Breakdown(_ context.Context, q Breakdown) (Groups, State, error) {
	r.asked = q
	return Groups{}, State{}, nil
}

func (r *recorder) Funnel(_ context.Context, q Funnel) ([]int64, State, error) {
	r.asked = q
	return make([]int64, len(q.Steps)), State{}, nil
}

func (r *recorder) Retention(_ context.Context, q Retention) ([]Cohort, State, error) {
	r.asked = q
	return nil, State{}, nil
}

func (r *recorder) Events(_ context.Context, q Events) ([]Event, State, error) {
	r.asked = q
	return nil, State{}, nil
}

func (r *recorder) Totals(_ context.Context, q Totals) ([]int64, State, error) {
	r.asked = q
	return make([]int64, len(q.Windows)), State{}, nil
}

func (r *recorder) Decided() (uint64, int64) { return 0, 0 }

func run(t *testing.T, body string) (any, error) {
	t.Helper()
	r := &recorder{}
	s, err := New(Options{Store: r, Progress: r})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Run(t.Context(), known(1), []byte(body))
	if err == nil {
		if _, err := json.Marshal(answer); err != nil {
			t.Fatal(err)
		}
	}
	return r.asked, err
}

const january = `"from":"2024-01-01T00:00:00Z","to":"2024-02-01T00:00:00Z"`

func TestRefusedSyntax(t *testing.T) {
	for name, body := range map[string]string{
		"empty":           ``,
		"broken":          `{"type":`,
		"trailing":        `{"type":"events"} {}`,
		"repeated":        `{"type":"events","type":"events"}`,
		"repeated inside": `{"type":"events","where":[{"op":"eq","op":"eq"}]}`,
		"not UTF-8":       "{\"type\":\"\xff\"}",
		"lone surrogate":  `{"type":"\ud800"}`,
		"deep":            `{"type":"events","where":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	} {
		if _, err := run(t, body); fault.CodeOf(err) != api.CodeInvalidJSON {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := run(t, `{"type":"events","where":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`)
	if fault.CodeOf(err) != api.CodeValidationFailed {
		t.Errorf("64 levels: %v", err)
	}
}

func TestRefusedFields(t *testing.T) {
	trend := `"type":"trend","interval":"day","measure":"count",` + january
	for _, c := range []struct{ body, field string }{
		{`[]`, "body"},
		{`{}`, "type"},
		{`{"type":7}`, "type"},
		{`{"type":"trends"}`, "type"},
		{`{` + trend + `,"evnt":"a"}`, "evnt"},
		{`{` + trend + `,"limit":5}`, "limit"},
		{`{` + trend + `,"where":[{"property":"properties.a","op":"eq","value":1,"x":1}]}`, "where[0].x"},
		{`{` + trend + `,"event":7}`, "event"},
		{`{` + trend + `,"event":[]}`, "event"},
		{`{` + trend + `,"event":["a",""]}`, "event[1]"},
		{`{` + trend + `,"timezone":"Mars/Olympus"}`, "timezone"},
		{`{` + trend + `,"timezone":"Local"}`, "timezone"},
		{`{` + trend + `,"timezone":""}`, "timezone"},
		{`{` + trend + `,"timezone":"../../etc/passwd"}`, "timezone"},
		{`{` + trend + `,"where":{}}`, "where"},
		{`{"type":"trend","interval":"minute","measure":"count",` + january + `}`, "interval"},
		{`{"type":"trend","measure":"count",` + january + `}`, "interval"},
		{`{"type":"trend","interval":"day","measure":"sum",` + january + `}`, "measure"},
		{`{"type":"trend","interval":"hour","measure":"count","from":"2000-01-01T00:00:00Z","to":"2024-01-01T00:00:00Z"}`, "interval"},
		{`{"type":"trend","interval":"day","to":"2024-01-01T00:00:00Z"}`, "from"},
		{`{"type":"trend","interval":"day","from":"2024-01-01T00:00:00Z"}`, "to"},
		{`{"type":"trend","interval":"day","from":"2024-01-01","to":"2024-01-02"}`, "from"},
		{`{"type":"trend","interval":"day","from":"2024-01-01T00:00:00Z","to":"2024-01-01T00:00:00Z"}`, "to"},
		{`{"type":"breakdown",` + january + `}`, "by"},
		{`{"type":"breakdown","by":"platform",` + january + `}`, "by"},
		{`{"type":"breakdown","by":"properties.",` + january + `}`, "by"},
		{`{"type":"breakdown","by":"event","limit":0,` + january + `}`, "limit"},
		{`{"type":"breakdown","by":"event","limit":1001,` + january + `}`, "limit"},
		{`{"type":"breakdown","by":"event","limit":1.5,` + january + `}`, "limit"},
		{`{"type":"breakdown","by":"event","limit":"5",` + january + `}`, "limit"},
		{`{"type":"funnel","window":"1h",` + january + `}`, "steps"},
		{`{"type":"funnel","steps":[],"window":"1h",` + january + `}`, "steps"},
		{`{"type":"funnel","steps":[{}],"window":"1h",` + january + `}`, "steps[0].event"},
		{`{"type":"funnel","steps":[{"event":"a"},{"event":"b","where":[{"property":"properties.a","op":"is"}]}],"window":"1h",` + january + `}`, "steps[1].where[0].op"},
		{`{"type":"funnel","steps":[{"event":"a"}],` + january + `}`, "window"},
		{`{"type":"funnel","steps":[{"event":"a"}],"window":"soon",` + january + `}`, "window"},
		{`{"type":"funnel","steps":[{"event":"a"}],"window":"-1h",` + january + `}`, "window"},
		{`{"type":"funnel","steps":[{"event":"a"}],"window":"0s",` + january + `}`, "window"},
		{`{"type":"retention","return_event":"b","interval":"day",` + january + `}`, "start_event"},
		{`{"type":"retention","start_event":"a","interval":"day",` + january + `}`, "return_event"},
		{`{"type":"retention","start_event":"a","return_event":"b","interval":"hour",` + january + `}`, "interval"},
		{`{"type":"retention","start_event":"a","return_event":"b","interval":"day","periods":0,` + january + `}`, "periods"},
		{`{"type":"events","limit":201}`, "limit"},
		{`{"type":"events","cursor":"!"}`, "cursor"},
		{`{"type":"events","person":""}`, "person"},
		{`{"type":"events","where":[{"op":"eq","value":1}]}`, "where[0].property"},
		{`{"type":"events","where":[{"property":"event","op":"eq","value":1}]}`, "where[0].property"},
		{`{"type":"events","where":[{"property":"properties.a","value":1}]}`, "where[0].op"},
		{`{"type":"events","where":[{"property":"properties.a","op":"eq"}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"eq","value":null}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"eq","value":[1]}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"eq","value":1e999}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"in","value":1}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"in","value":[]}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"in","value":[1,{}]}]}`, "where[0].value[1]"},
		{`{"type":"events","where":[{"property":"properties.a","op":"set","value":1}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"gt","value":true}]}`, "where[0].value"},
		{`{"type":"events","where":[{"property":"properties.a","op":"contains","value":5}]}`, "where[0].value"},
	} {
		_, err := run(t, c.body)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != api.CodeValidationFailed || f.Details["field"] != c.field {
			t.Errorf("%s\nwant field %s, got %v", c.body, c.field, err)
		}
	}
}

func TestAccepted(t *testing.T) {
	for _, body := range []string{
		`{"type":"trend","interval":"day","measure":"count","event":null,` + january + `}`,
		`{"type":"trend","interval":"year","measure":"persons","from":"0001-01-01T00:00:00Z","to":"9999-01-01T00:00:00Z","timezone":"America/New_York"}`,
		`{"type":"trend","interval":"day","measure":"count","from":"2024-01-01T00:00:00+05:30","to":"2024-02-01T00:00:00.5-08:00"}`,
		`{"type":"events"}`,
		`{"type":"events","where":null,"cursor":null,"limit":null,"timezone":null}`,
		`{"type":"events","where":[{"property":"traits.a.b","op":"set","value":null}]}`,
		`{"type":"retention","start_event":"a","return_event":"b","interval":"week",` + january + `}`,
	} {
		if _, err := run(t, body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for window, ms := range map[string]int64{"24h": 86_400_000, "30m": 1_800_000, "7d": 604_800_000, "1d12h": 129_600_000, "1h30m": 5_400_000, "500ms": 500} {
		asked, err := run(t, `{"type":"funnel","steps":[{"event":"a"}],"window":"`+window+`",`+january+`}`)
		if err != nil || asked.(Funnel).Window != ms {
			t.Errorf("window %s: %+v, %v", window, asked, err)
		}
	}
}

// Bounds between two milliseconds are rounded up: stored times are whole
// milliseconds, so exactly the same events lie in the range.
func TestBounds(t *testing.T) {
	asked, err := run(t, `{"type":"events","from":"1970-01-01T00:00:00.0001Z","to":"1970-01-01T00:00:00.0020Z"}`)
	if err != nil {
		t.Fatal(err)
	}
	if q := asked.(Events); q.From != 1 || q.To != 2 {
		t.Errorf("from %d to %d", q.From, q.To)
	}
}

func FuzzRun(f *testing.F) {
	for _, seed := range []string{
		`{"type":"events","cursor":"AAAA"}`, `{"type":"trend","interval":"day","measure":"count",` + january + `}`,
		`{"type":"funnel","steps":[{"event":"a","where":[{"property":"properties.a","op":"in","value":[1]}]}],"window":"1d",` + january + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &recorder{}
		s, err := New(Options{Store: r, Progress: r})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Run(t.Context(), known(1), body)
		if err != nil {
			if code := fault.CodeOf(err); code != api.CodeInvalidJSON && code != api.CodeValidationFailed {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if _, err := json.Marshal(answer); err != nil {
			t.Fatal(err)
		}
	})
}

// known is a project that needs no looking up.
func known(number uint32) Project {
	return func(context.Context) (uint32, error) { return number, nil }
}

// A faulty request is refused for its fault, and a project that is not there
// is never asked about.
func TestTheProjectIsLookedUpAfterTheRequestWasJudged(t *testing.T) {
	t.Parallel()
	missing := fault.New(api.CodeNotFound, "there is no such project")
	find := func(context.Context) (uint32, error) { return 0, missing }
	store := &recorder{}
	s, err := New(Options{Store: store, Progress: store})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]api.Code{
		`{`:                                 api.CodeInvalidJSON,
		`{"type":"none"}`:                   api.CodeValidationFailed,
		`{"type":"trend","interval":"day"}`: api.CodeValidationFailed,
		`{"type":"events"}`:                 api.CodeNotFound,
	} {
		if _, err := s.Run(t.Context(), find, []byte(body)); fault.CodeOf(err) != want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
	if store.asked != nil {
		t.Errorf("the store was asked %+v", store.asked)
	}
}
