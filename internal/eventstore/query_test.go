package eventstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

func TestTrend(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	noon := at(t, "03-05 12:00")
	l.add(noon,
		event("a", "x", "", at(t, "03-01 00:00")),
		event("a", "x", "", at(t, "03-01 23:59")),
		event("b", "y", "", at(t, "03-01 12:00")),
		event("a", "y", "", at(t, "03-03 12:00")),
		event("a", "y", "", at(t, "03-04 00:00")),
		event("a", "z", "", at(t, "02-29 23:59:59.999")))
	days := `"type":"trend","interval":"day","from":"2024-03-01T00:00:00Z","to":"2024-03-04T00:00:00Z"`
	got := ask(t, s, `{`+days+`,"measure":"count","event":"a"}`)
	want(t, got["series"], `[{"event":"a","points":[{"at":"2024-03-01T00:00:00Z","value":2},{"at":"2024-03-02T00:00:00Z","value":0},{"at":"2024-03-03T00:00:00Z","value":1}]}]`)
	got = ask(t, s, `{`+days+`,"measure":"persons"}`)
	want(t, got["series"], `[{"event":null,"points":[{"at":"2024-03-01T00:00:00Z","value":2},{"at":"2024-03-02T00:00:00Z","value":0},{"at":"2024-03-03T00:00:00Z","value":1}]}]`)
	got = ask(t, s, `{"type":"trend","interval":"month","measure":"count","event":["b","a"],"from":"2024-02-15T00:00:00Z","to":"2024-03-31T00:00:00Z"}`)
	want(t, got["series"], `[{"event":"b","points":[{"at":"2024-02-01T00:00:00Z","value":0},{"at":"2024-03-01T00:00:00Z","value":1}]},`+
		`{"event":"a","points":[{"at":"2024-02-01T00:00:00Z","value":1},{"at":"2024-03-01T00:00:00Z","value":4}]}]`)
	want(t, got["stored_through"], `"1970-01-01T00:00:00.000Z"`)
}

// Every bucket that DuckDB computes must be one that the calendar lists: the
// sum of a trend's points is the number of its events, in any zone.
func TestTrendZones(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	var items []record.Item
	from, to := at(t, "01-01 00:00"), at(t, "12-31 23:00")
	count := 0
	for ts := from; ts < to; ts += 23*60_000 + 7_001 {
		items = append(items, event("a", "x", "", ts))
		if count++; len(items) == 1000 {
			l.add(ts, items...)
			items = nil
		}
	}
	l.add(to, items...)
	for _, zone := range []string{"UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu", "America/Scoresbysund", "Pacific/Apia", "Africa/Casablanca"} {
		for _, interval := range []string{"hour", "day", "week", "month", "year"} {
			got := ask(t, s, fmt.Sprintf(`{"type":"trend","interval":%q,"timezone":%q,"measure":"count",`+year+`}`, interval, zone))
			points := got["series"].([]any)[0].(map[string]any)["points"].([]any)
			sum, last := 0, ""
			for _, p := range points {
				at := p.(map[string]any)["at"].(string)
				if at <= last {
					t.Errorf("%s %s: %s follows %s", zone, interval, at, last)
				}
				sum, last = sum+number(p.(map[string]any)["value"]), at
			}
			if sum != count {
				t.Errorf("%s %s: the points add up to %d, want %d", zone, interval, sum, count)
			}
		}
	}
}

func TestBreakdown(t *testing.T) {
	s := open(t, eventstore.Options{})
	newLog(t, s).add(at(t, "03-05 12:00"),
		event("a", "x", "", at(t, "03-01 00:00"), `{"platform":"web"}`),
		event("a", "y", "", at(t, "03-01 00:01"), `{"platform":"web"}`),
		event("a", "y", "", at(t, "03-01 00:02"), `{"platform":"ios"}`),
		event("a", "y", "", at(t, "03-01 00:03"), `{"platform":null}`),
		event("b", "z", "", at(t, "03-01 00:04")),
		event("b", "x", "", at(t, "03-01 00:05"), `{"platform":7}`))
	ask := func(rest string) map[string]any { return ask(t, s, `{"type":"breakdown",`+year+`,`+rest+`}`) }
	got := ask(`"by":"event","measure":"count"`)
	want(t, []any{got["items"], got["other"]}, `[[{"key":"a","value":4},{"key":"b","value":2}],0]`)
	got = ask(`"by":"properties.platform","measure":"count"`)
	want(t, got["items"], `[{"key":"web","value":2},{"key":null,"value":2},{"key":"7","value":1},{"key":"ios","value":1}]`)
	got = ask(`"by":"properties.platform","measure":"count","limit":1`)
	want(t, []any{got["items"], got["other"]}, `[[{"key":"web","value":2}],4]`)
	got = ask(`"by":"properties.platform","measure":"persons","limit":2`)
	want(t, []any{got["items"], got["other"]}, `[[{"key":"web","value":2},{"key":null,"value":2}],2]`)
	got = ask(`"by":"properties.platform","measure":"persons","limit":1`)
	want(t, []any{got["items"], got["other"]}, `[[{"key":"web","value":2}],3]`)
	got = ask(`"by":"properties.platform","measure":"count","event":"b"`)
	want(t, got["items"], `[{"key":"7","value":1},{"key":null,"value":1}]`)
}

func TestFilters(t *testing.T) {
	s := open(t, eventstore.Options{})
	odd := `{"we.ird \"name'/~:*":1,"":"empty","deep":{"er":{"x":"y"}},"deep.er":"flat","n":10,"s":"10","b":true,"z":null,"list":[1,2],"text":"Hello World","f":1.5,"huge":1e999}`
	newLog(t, s).add(at(t, "03-05 12:00"),
		event("odd", "x", "", at(t, "03-01 00:00"), odd, `{"library":"js"}`),
		event("none", "y", "", at(t, "03-01 00:01")))
	for _, c := range []struct {
		property, op, value string
		odd, none           bool
	}{
		{`properties.n`, "eq", `10`, true, false},
		{`properties.n`, "eq", `10.0`, true, false},
		{`properties.n`, "eq", `"10"`, true, false},
		{`properties.s`, "eq", `10`, true, false},
		{`properties.n`, "eq", `11`, false, false},
		{`properties.n`, "ne", `10`, false, true},
		{`properties.n`, "ne", `11`, true, true},
		{`properties.n`, "gt", `9`, true, false},
		{`properties.n`, "gt", `"9"`, false, false},
		{`properties.n`, "gte", `10`, true, false},
		{`properties.n`, "lt", `10`, false, false},
		{`properties.n`, "lte", `10`, true, false},
		{`properties.text`, "gt", `5`, false, false},
		{`properties.text`, "gt", `"Hello"`, true, false},
		{`properties.f`, "lt", `1.51`, true, false},
		{`properties.huge`, "gt", `1`, false, false},
		{`properties.b`, "eq", `true`, true, false},
		{`properties.b`, "eq", `false`, false, false},
		{`properties.z`, "set", ``, false, false},
		{`properties.z`, "not_set", ``, true, true},
		{`properties.n`, "set", ``, true, false},
		{`properties.text`, "contains", `"lo Wo"`, true, false},
		{`properties.text`, "contains", `"%"`, false, false},
		{`properties.text`, "in", `["x","Hello World",3]`, true, false},
		{`properties.n`, "in", `["x",10]`, true, false},
		{`properties.n`, "in", `["x",true]`, false, false},
		{`properties.deep.er`, "eq", `"flat"`, true, false},
		{`properties.deep.er.x`, "eq", `"y"`, true, false},
		{`properties.we.ird "name'/~:*`, "eq", `1`, true, false},
		{`properties.list`, "eq", `"[1,2]"`, true, false},
		{`properties.list.0`, "eq", `1`, true, false},
		{`context.library`, "eq", `"js"`, true, false},
		{`properties.x'); DROP TABLE events; --`, "eq", `"'); DROP TABLE events; --"`, false, false},
	} {
		got := ask(t, s, `{"type":"events",`+where(c.property, c.op, c.value)+`}`)
		var names []string
		for _, item := range got["items"].([]any) {
			names = append(names, item.(map[string]any)["event"].(string))
		}
		list := strings.Join(names, " ")
		if strings.Contains(list, "odd") != c.odd || strings.Contains(list, "none") != c.none {
			t.Errorf("%s %s %s: got [%s]", c.property, c.op, c.value, list)
		}
	}
}

func TestTraits(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	l.add(at(t, "03-05 12:00"),
		identify("x", "ann", at(t, "03-02 00:00"), `{"plan":"pro","company":{"size":5}}`),
		identify("x", "ann", at(t, "03-01 00:00"), `{"plan":"free","city":"Oslo"}`), // older: loses for plan
		identify("y", "bob", at(t, "03-01 00:00"), `{"plan":"free"}`),
		event("buy", "x", "", at(t, "03-03 00:00")),
		event("buy", "", "bob", at(t, "03-03 00:00")),
		event("buy", "stranger", "", at(t, "03-03 00:00")))
	count := func(filter string) string {
		got := ask(t, s, `{"type":"breakdown","by":"traits.plan","measure":"persons",`+year+`,"event":"buy",`+filter+`}`)
		return show(got["items"])
	}
	for filter, wanted := range map[string]string{
		`"where":[]`:                               `[{"key":"free","value":1},{"key":"pro","value":1},{"key":null,"value":1}]`,
		where("traits.plan", "eq", `"pro"`):        `[{"key":"pro","value":1}]`,
		where("traits.city", "eq", `"Oslo"`):       `[{"key":"pro","value":1}]`,
		where("traits.company.size", "gte", `5`):   `[{"key":"pro","value":1}]`,
		where("traits.plan", "not_set", ``):        `[{"key":null,"value":1}]`,
		where("traits.company", "contains", `"5"`): `[{"key":"pro","value":1}]`,
	} {
		if got := count(filter); got != wanted {
			t.Errorf("%s\ngot  %s\nwant %s", filter, got, wanted)
		}
	}
}

func TestFunnel(t *testing.T) {
	s := open(t, eventstore.Options{})
	m := func(minute int) int64 { return at(t, "03-01 00:00") + int64(minute)*60_000 }
	newLog(t, s).add(at(t, "03-05 12:00"),
		event("a", "x", "", m(0)), event("b", "x", "", m(50)), event("a", "x", "", m(45)), event("c", "x", "", m(70)),
		event("a", "y", "", m(0)), event("b", "y", "", m(0)), // same time: not later
		event("b", "z", "", m(0)), event("a", "z", "", m(1)),
		event("a", "w", "", m(0)), event("b", "w", "", m(31), `{"n":1}`))
	ask := func(rest string) string { return show(ask(t, s, `{"type":"funnel",`+year+`,`+rest+`}`)["steps"]) }
	for rest, wanted := range map[string]string{
		`"steps":[{"event":"a"},{"event":"b"},{"event":"c"}],"window":"30m"`:                            `[{"event":"a","persons":4},{"event":"b","persons":1},{"event":"c","persons":1}]`,
		`"steps":[{"event":"a"},{"event":"b"}],"window":"31m"`:                                          `[{"event":"a","persons":4},{"event":"b","persons":2}]`,
		`"steps":[{"event":"a"},{"event":"a"}],"window":"1d"`:                                           `[{"event":"a","persons":4},{"event":"a","persons":1}]`,
		`"steps":[{"event":"c"},{"event":"b"}],"window":"1d"`:                                           `[{"event":"c","persons":1},{"event":"b","persons":0}]`,
		`"steps":[{"event":"a"},{"event":"b",` + where("properties.n", "eq", "1") + `}],"window":"24h"`: `[{"event":"a","persons":4},{"event":"b","persons":1}]`,
	} {
		if got := ask(rest); got != wanted {
			t.Errorf("%s\ngot  %s\nwant %s", rest, got, wanted)
		}
	}
}

func TestRetention(t *testing.T) {
	s := open(t, eventstore.Options{})
	newLog(t, s).add(at(t, "03-05 12:00"),
		event("start", "x", "", at(t, "03-01 10:00")), event("back", "x", "", at(t, "03-01 09:00")), // before the start
		event("back", "x", "", at(t, "03-02 09:00")), event("back", "x", "", at(t, "03-02 10:00")), event("start", "x", "", at(t, "03-03 09:00")),
		event("start", "y", "", at(t, "03-01 10:00")), event("back", "y", "", at(t, "03-01 10:00")), event("back", "y", "", at(t, "03-04 00:00")),
		event("start", "z", "", at(t, "03-03 10:00")))
	got := ask(t, s, `{"type":"retention","start_event":"start","return_event":"back","interval":"day","periods":3,"from":"2024-03-01T00:00:00Z","to":"2024-03-04T00:00:00Z"}`)
	want(t, got["cohorts"], `[{"at":"2024-03-01T00:00:00Z","returned":[1,1,0],"size":2},{"at":"2024-03-02T00:00:00Z","returned":[0,0],"size":0},{"at":"2024-03-03T00:00:00Z","returned":[0],"size":1}]`)
}

func TestEventsPages(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	base := at(t, "03-01 00:00")
	for i := range 7 {
		l.add(base, event("a", fmt.Sprint("anon", i), "", base+int64(i/3)))
	}
	var seen []string
	cursor := "null"
	for page := 0; ; page++ {
		got := ask(t, s, `{"type":"events","limit":2,"cursor":`+cursor+`}`)
		for _, item := range got["items"].([]any) {
			seen = append(seen, item.(map[string]any)["anon_id"].(string))
		}
		if got["next_cursor"] == nil {
			break
		}
		cursor = show(got["next_cursor"])
		l.add(base, event("a", "late", "", base+100)) // newer than the cursor: not in later pages
	}
	want(t, seen, `["anon6","anon5","anon4","anon3","anon2","anon1","anon0"]`)
}

func TestEventFields(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	it := event("signed_up", "x", "", at(t, "03-01 00:00:00.123"), `{"a":1}`, `{"library":"js"}`)
	it.EventID = record.EventID{0xAB, 0xCD, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	it.SessionID, it.TSStatus, it.ClientTS = "s1", record.TSClampedFuture, at(t, "05-01 00:00")
	l.add(at(t, "03-01 00:00:01.000"), it, alias("x", "ann", at(t, "03-02 00:00")))
	got := ask(t, s, `{"type":"events"}`)
	want(t, got["items"], `[{"anon_id":"x","client_ts":"2024-05-01T00:00:00.000Z","context":{"library":"js"},"event":"signed_up",`+
		`"event_id":"abcd0102-0304-0506-0708-090a0b0c0d0e","key_kind":"server","person":"ann","properties":{"a":1},`+
		`"received_at":"2024-03-01T00:00:01.000Z","session_id":"s1","ts":"2024-03-01T00:00:00.123Z","ts_status":"clamped_future","user_id":null}]`)
	for person, count := range map[string]int{"x": 1, "ann": 1, "bob": 0} {
		got := ask(t, s, fmt.Sprintf(`{"type":"events","person":%q}`, person))
		if n := len(got["items"].([]any)); n != count {
			t.Errorf("person %s: %d events, want %d", person, n, count)
		}
	}
}
