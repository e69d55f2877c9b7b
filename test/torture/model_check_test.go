package torture_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// bench is a model with one acknowledged request of four items: two with ids,
// one without, one invalid; and the rows that are right for it.
type bench struct {
	*model

	batch *batch
	rows  []row
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{model: newModel()}
	first, second := uuid.UUID{15: 1}, uuid.UUID{15: 2}
	b.batch = &batch{path: pathTrack, kind: "server", items: []*item{
		{name: "one", claim: b.claim("server", first)},
		{name: "two", claim: b.claim("server", second), properties: []byte(`{"n": 1}`)},
		{name: "three"},
		{name: "four", code: "invalid_event"},
	}}
	for _, it := range b.batch.items {
		it.kind, it.event, it.anonID = "server", "click", "a"
		b.add(it)
	}
	b.rows = []row{
		{EventID: first, SessionID: new("one")},
		{EventID: second, SessionID: new("two"), Properties: json.RawMessage(`{"n":1}`)},
		{EventID: uuid.UUID{15: 3}, SessionID: new("three")},
	}
	for i := range b.rows {
		r := &b.rows[i]
		r.Event, r.KeyKind, r.AnonID, r.Person = "click", "server", new("a"), "a"
	}
	least := b.begin(b.batch)
	b.deliver(b.batch.number)
	if err := b.acknowledge(b.batch, least, answer(3, 0, "invalid_event")); err != nil {
		t.Fatal(err)
	}
	return b
}

func answer(accepted, duplicates int, code string) (a trackAnswer) {
	a.Accepted, a.Duplicates = accepted, duplicates
	a.Rejected = append(a.Rejected, struct {
		Index   int     `json:"index"`
		EventID *string `json:"event_id"`
		Code    string  `json:"code"`
	}{3, nil, code})
	return a
}

// TestModelSeesWhatIsWrong: the judge is not blind.
func TestModelSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*bench)
		want  string
	}{
		"nothing":          {func(*bench) {}, ""},
		"lost":             {func(b *bench) { b.rows = b.rows[1:] }, "acknowledged but not stored: event 00000000-0000-0000-0000-000000000001"},
		"doubled":          {func(b *bench) { b.rows = append(b.rows, b.rows[0]) }, "stored 2 times"},
		"lost without id":  {func(b *bench) { b.rows = b.rows[:2] }, "acknowledged but not stored"},
		"idless too often": {func(b *bench) { b.rows = append(b.rows, b.rows[2]) }, "stored 2 times, delivered 1 times"},
		"never sent":       {func(b *bench) { b.rows[0].SessionID = new("five") }, "never sent"},
		"rejected":         {func(b *bench) { b.rows[0].SessionID = new("four") }, "had to be rejected"},
		"refused":          {func(b *bench) { b.refuse(b.batch.number, "500 internal") }, "took nothing"},
		"altered":          {func(b *bench) { b.rows[1].Properties = json.RawMessage(`{"n":2}`) }, "otherwise than sent"},
		"another kind":     {func(b *bench) { b.rows[0].KeyKind = "browser" }, "otherwise than sent"},
		"another id":       {func(b *bench) { b.rows[0].EventID[0] = 1 }, "stored with the id"},
		"another person":   {func(b *bench) { b.rows[0].Person = "b" }, `the person is "b"`},
		"link forgotten":   {func(b *bench) { b.link("a").acked = true }, "to whom the anon_id was linked"},
		"second wins":      {func(b *bench) { b.second(t); b.rows[0].SessionID = new("late") }, "another item had been acknowledged"},
	} {
		b := newBench(t)
		c.spoil(b)
		problems, _ := b.checkRows(b.rows, false)
		if got := strings.Join(problems, "\n"); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// second sends another item with the first one's id.
func (b *bench) second(t *testing.T) {
	t.Helper()
	late := *b.batch.items[0]
	late.name = "late"
	b.add(&late)
	again := &batch{path: pathTrack, kind: "server", items: []*item{&late}}
	least := b.begin(again)
	b.deliver(again.number)
	if err := b.acknowledge(again, least, trackAnswer{Accepted: 1, Duplicates: 1}); err != nil {
		t.Error(err)
	}
}

// TestModelSeesWrongAnswers: neither is it deaf.
func TestModelSeesWrongAnswers(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]trackAnswer{
		"too few accepted":          answer(2, 2, "invalid_event"),
		"a repeat called new":       answer(3, 1, "invalid_event"),
		"a new one called a repeat": answer(3, 3, "invalid_event"),
		"another verdict":           answer(3, 2, "invalid_event_id"),
		"no verdict":                {Accepted: 3, Duplicates: 2},
	} {
		b := newBench(t)
		least := b.begin(b.batch)
		b.deliver(b.batch.number)
		if b.acknowledge(b.batch, least, a) == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
	b := newBench(t)
	least := b.begin(b.batch)
	b.deliver(b.batch.number)
	if err := b.acknowledge(b.batch, least, answer(3, 2, "invalid_event")); err != nil {
		t.Errorf("a right answer is refused: %v", err)
	}
}
