package eventstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/record"
)

// at returns a time of 2024 in milliseconds, like "01-31 10:00".
func at(tb testing.TB, text string) int64 {
	tb.Helper()
	for _, layout := range []string{"2006-01-02 15:04:05.000", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, "2024-"+text); err == nil {
			return t.UnixMilli()
		}
	}
	tb.Fatalf("not a time: %q", text)
	return 0
}

// log builds a log record by record and applies it.
type log struct {
	tb    testing.TB
	store *eventstore.Store
	next  uint64
}

func newLog(tb testing.TB, s *eventstore.Store) *log { return &log{tb: tb, store: s, next: 1} }

// make returns the next record of project 1 without applying it.
func (l *log) make(received int64, items ...record.Item) record.Record {
	r := record.Record{
		Position: l.next, Received: received, Window: window, Store: storeID,
		Project: 1, KeyKind: record.KeyServer, Key: 1, Items: items,
	}
	for i := range r.Items {
		it := &r.Items[i]
		if it.EventID == (record.EventID{}) {
			it.EventID = record.EventID{0xff, byte(l.next >> 16), byte(l.next >> 8), byte(l.next), byte(i)}
		}
	}
	l.next = r.Last() + 1
	return r
}

// add applies items received at a time as one record of project 1.
func (l *log) add(received int64, items ...record.Item) {
	l.tb.Helper()
	l.apply(l.make(received, items...))
}

func (l *log) apply(records ...record.Record) eventstore.Mark {
	l.tb.Helper()
	mark, err := l.store.Apply(l.tb.Context(), eventstore.ApplyParams{Records: records})
	if err != nil {
		l.tb.Fatal(err)
	}
	return mark
}

func event(name, anonID, userID string, ts int64, properties ...string) record.Item {
	it := record.Item{Type: record.ItemEvent, Event: name, AnonID: anonID, UserID: userID, TS: ts, ClientTS: ts, HasTS: true}
	if len(properties) > 0 {
		it.Properties = []byte(properties[0])
	}
	if len(properties) > 1 {
		it.Context = []byte(properties[1])
	}
	return it
}

func identify(anonID, userID string, ts int64, traits string) record.Item {
	it := record.Item{Type: record.ItemIdentify, AnonID: anonID, UserID: userID, TS: ts, ClientTS: ts, HasTS: true}
	if traits != "" {
		it.Traits = []byte(traits)
	}
	return it
}

func alias(anonID, userID string, ts int64) record.Item {
	return record.Item{Type: record.ItemAlias, AnonID: anonID, UserID: userID, TS: ts}
}

func erase(p eventstore.Person) record.Item {
	return record.Item{Type: record.ItemErase, UserID: p.UserID, AnonID: p.AnonID}
}

// still is a progress that has decided nothing yet.
type still struct{}

func (still) Decided() (uint64, int64) { return 0, 0 }

// ask runs a query about project 1 and returns its answer as generic JSON.
func ask(tb testing.TB, s *eventstore.Store, body string) map[string]any {
	tb.Helper()
	answer, err := run(tb, s, body)
	if err != nil {
		tb.Fatalf("%s\n%v", body, err)
	}
	return answer
}

func run(tb testing.TB, s *eventstore.Store, body string) (map[string]any, error) {
	tb.Helper()
	return runFor(tb.Context(), s, 1, body)
}

func runFor(ctx context.Context, s *eventstore.Store, project uint32, body string) (map[string]any, error) {
	service, err := query.New(query.Options{Store: s, Progress: still{}})
	if err != nil {
		return nil, err
	}
	response, err := service.Run(ctx, known(project), []byte(body))
	if err != nil {
		return nil, err
	}
	return decodeAnswer(response)
}

// generic returns an answer as its JSON reads.
func generic(tb testing.TB, response any) map[string]any {
	tb.Helper()
	answer, err := decodeAnswer(response)
	if err != nil {
		tb.Fatal(err)
	}
	return answer
}

func decodeAnswer(response any) (map[string]any, error) {
	text, err := json.Marshal(response)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // properties may hold numbers that no float64 does
	err = dec.Decode(&answer)
	return answer, err
}

// show writes a part of an answer compactly.
func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func want(tb testing.TB, got any, wanted string) {
	tb.Helper()
	if show(got) != wanted {
		tb.Errorf("got  %s\nwant %s", show(got), wanted)
	}
}

// year is the range of most questions.
const year = `"from":"2024-01-01T00:00:00Z","to":"2025-01-01T00:00:00Z"`

func where(property, op, value string) string {
	if value == "" {
		return fmt.Sprintf(`"where":[{"property":%q,"op":%q}]`, property, op)
	}
	return fmt.Sprintf(`"where":[{"property":%q,"op":%q,"value":%s}]`, property, op, value)
}

// number reads a number of an answer.
func number(v any) int {
	n, err := v.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return int(n)
}

// known is a project that needs no looking up.
func known(number uint32) query.Project {
	return func(context.Context) (uint32, error) { return number, nil }
}
