package eventstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// model is the meaning of a log, computed the slow and obvious way.
type model struct {
	events []modelEvent
	links  []modelLink
	traits []modelTrait
	// used counts what was stored, by month.
	used map[int32]eventstore.Usage
}

type modelEvent struct {
	name, anon, user string
	ts, received     int64
	seq              int
}

type modelTrait struct {
	user string
	seq  int
}

type modelLink struct {
	anon, user string
	ts         int64
	seq        int
}

func (m *model) add(it record.Item, seq int, received int64) {
	if it.Type == record.ItemErase {
		m.erase(it.Person())
		return
	}
	if it.Type != record.ItemAlias {
		name := it.Event
		if it.Type == record.ItemIdentify {
			name = "identify"
		}
		m.events = append(m.events, modelEvent{name, it.AnonID, it.UserID, it.TS, received, seq})
		m.use(it, received)
	}
	if it.Type == record.ItemEvent {
		return
	}
	if it.Traits != nil {
		m.traits = append(m.traits, modelTrait{it.UserID, seq})
	}
	for _, l := range m.links {
		if l.anon == it.AnonID && l.user == it.UserID {
			return
		}
	}
	m.links = append(m.links, modelLink{it.AnonID, it.UserID, it.TS, seq})
}

func (m *model) use(it record.Item, received int64) {
	at := time.UnixMilli(received).UTC()
	month := int32(at.Year()*100 + int(at.Month()))
	u := m.used[month]
	u.Month, u.Events, u.Bytes = month, u.Events+1, u.Bytes+int64(len(record.AppendItem(nil, &it)))
	m.used[month] = u
}

// owns reports whether an event is of a person, as an erasure or an export of
// it takes it.
func (m *model) owns(p eventstore.Person, e modelEvent) bool {
	return p.UserID != "" && m.person(e) == p.UserID || p.AnonID != "" && e.anon == p.AnonID
}

func (l modelLink) of(p eventstore.Person) bool { return l.user == p.UserID || l.anon == p.AnonID }

func (m *model) erase(p eventstore.Person) {
	m.events = slices.DeleteFunc(m.events, func(e modelEvent) bool { return m.owns(p, e) })
	m.links = slices.DeleteFunc(m.links, func(l modelLink) bool { return l.of(p) })
	m.traits = slices.DeleteFunc(m.traits, func(t modelTrait) bool { return t.user == p.UserID })
}

func (m *model) deleteBefore(at int64) (deleted int) {
	before := len(m.events)
	m.events = slices.DeleteFunc(m.events, func(e modelEvent) bool { return e.ts < at && e.received < at })
	return before - len(m.events)
}

// export lists what is stored of a person.
func (m *model) export(p eventstore.Person) (list []string) {
	for _, e := range m.events {
		if m.owns(p, e) {
			list = append(list, fmt.Sprintf("event %d %s", e.seq, e.name))
		}
	}
	for _, l := range m.links {
		if l.of(p) {
			list = append(list, fmt.Sprintf("link %d %s %s", l.seq, l.anon, l.user))
		}
	}
	for _, t := range m.traits {
		if t.user == p.UserID {
			list = append(list, fmt.Sprintf("trait %d", t.seq))
		}
	}
	return list
}

// person is a user's id, or an anon id in brackets.
func (m *model) person(e modelEvent) string {
	if e.user != "" {
		return e.user
	}
	var latest, earliest *modelLink
	for i := range m.links {
		l := &m.links[i]
		if l.anon != e.anon {
			continue
		}
		if l.ts <= e.ts && (latest == nil || l.ts > latest.ts || l.ts == latest.ts && l.seq > latest.seq) {
			latest = l
		}
		if earliest == nil || l.ts < earliest.ts || l.ts == earliest.ts && l.seq < earliest.seq {
			earliest = l
		}
	}
	switch {
	case latest != nil:
		return latest.user
	case earliest != nil:
		return earliest.user
	default:
		return "[" + e.anon + "]"
	}
}

func (m *model) byPerson() map[string][]modelEvent {
	all := map[string][]modelEvent{}
	for _, e := range m.events {
		all[m.person(e)] = append(all[m.person(e)], e)
	}
	for _, list := range all {
		slices.SortStableFunc(list, func(a, b modelEvent) int { return cmp.Compare(a.ts, b.ts) })
	}
	return all
}

// trend counts the persons with an event of a name in each hour.
func (m *model) trend(name string, hours int) []int {
	values := make([]int, hours)
	for h := range values {
		for _, list := range m.byPerson() {
			if slices.ContainsFunc(list, func(e modelEvent) bool { return e.name == name && hourOf(e.ts) == h }) {
				values[h]++
			}
		}
	}
	return values
}

// funnel tries every start and takes the earliest next step each time.
func (m *model) funnel(steps []string, window int64) []int {
	persons := make([]int, len(steps))
	for _, list := range m.byPerson() {
		deepest := 0
		for i, start := range list {
			if start.name != steps[0] {
				continue
			}
			depth, last := 1, start.ts
			for _, e := range list[i:] {
				if depth < len(steps) && e.name == steps[depth] && e.ts > last && e.ts <= start.ts+window {
					depth, last = depth+1, e.ts
				}
			}
			deepest = max(deepest, depth)
		}
		for i := range deepest {
			persons[i]++
		}
	}
	return persons
}

// retention returns size and returned of each day's cohort.
func (m *model) retention(start, back string, days, periods int) []string {
	sizes, returned := make([]int, days), make([][]int, days)
	for d := range returned {
		returned[d] = make([]int, min(periods, days-d))
	}
	for _, list := range m.byPerson() {
		first := slices.IndexFunc(list, func(e modelEvent) bool { return e.name == start })
		if first < 0 {
			continue
		}
		day := hourOf(list[first].ts) / 24
		sizes[day]++
		for i := range returned[day] {
			if slices.ContainsFunc(list, func(e modelEvent) bool {
				return e.name == back && e.ts >= list[first].ts && hourOf(e.ts)/24 == day+i
			}) {
				returned[day][i]++
			}
		}
	}
	cohorts := make([]string, days)
	for d := range cohorts {
		cohorts[d] = show([]any{sizes[d], returned[d]})
	}
	return cohorts
}

const modelDays = 3

var modelStart = time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

func hourOf(ts int64) int { return int((ts - modelStart) / 3_600_000) }

// drawItem draws from few persons, names and times so that they collide.
func drawItem(t *rapid.T) record.Item {
	ts := modelStart + rapid.Int64Range(0, modelDays*24*2-1).Draw(t, "half hour")*1_800_000
	anon := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "anon")
	user := rapid.SampledFrom([]string{"A", "B", "x"}).Draw(t, "user")
	switch rapid.IntRange(0, 12).Draw(t, "type") {
	case 0:
		return alias(anon, user, ts)
	case 1:
		return identify(anon, user, ts, rapid.SampledFrom([]string{"", `{"a":1}`}).Draw(t, "traits"))
	case 10:
		return erase(eventstore.Person{UserID: user})
	case 11:
		return erase(eventstore.Person{AnonID: anon})
	case 2:
		return event(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "event"), anon, user, ts)
	default:
		return event(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "event"), anon, "", ts)
	}
}

func TestModel(t *testing.T) {
	s := open(t, eventstore.Options{})
	l := newLog(t, s)
	project := uint32(0)
	rapid.Check(t, func(rt *rapid.T) {
		project++
		m := &model{used: map[int32]eventstore.Usage{}}
		received := modelStart
		for range rapid.IntRange(1, 6).Draw(rt, "batches") {
			var records []record.Record
			for _, items := range rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(drawItem), 1, 6), 1, 4).Draw(rt, "records") {
				received += rapid.Int64Range(0, 12).Draw(rt, "hours") * 3_600_000
				r := l.make(received, items...)
				r.Project = project
				for i := range r.Items {
					m.add(r.Items[i], int(r.Position)+i, received)
				}
				records = append(records, r)
			}
			l.apply(records...)
			if rapid.IntRange(0, 5).Draw(rt, "retention") == 0 {
				// The clock may be behind the newest record, or far ahead of it.
				now := modelStart + rapid.Int64Range(0, modelDays*24).Draw(rt, "now")*3_600_000
				keep := rapid.Int64Range(0, 48).Draw(rt, "keep") * 3_600_000
				deleted, err := s.DeleteOlder(t.Context(), eventstore.Retention{Project: project, Now: now, Keep: keep, Window: window})
				if wanted := m.deleteBefore(min(now, received) - keep); err != nil || int(deleted) != wanted {
					rt.Fatalf("deleted %d rows, want %d: %v", deleted, wanted, err)
				}
			}
		}
		checkModel(rt, s, project, m)
		checkStoredOf(rt, s, project, m)
	})
}

// checkStoredOf compares what is stored of each person, what was used and the
// count of all rows.
func checkStoredOf(t *rapid.T, s *eventstore.Store, project uint32, m *model) {
	for _, p := range []eventstore.Person{{UserID: "A"}, {UserID: "B"}, {UserID: "x"}, {AnonID: "x"}, {AnonID: "y"}, {AnonID: "z"}} {
		got, err := exportOf(t.Context(), s, project, p)
		if wanted := m.export(p); err != nil || show(got) != show(wanted) {
			t.Fatalf("%+v: got %s, want %s: %v", p, show(got), show(wanted), err)
		}
	}
	usage, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage {
		if wanted := m.used[u.Month]; u.Project == project && (u.Events != wanted.Events || u.Bytes != wanted.Bytes) {
			t.Fatalf("got %+v, want %+v", u, wanted)
		}
	}
	months := len(slices.DeleteFunc(usage, func(u eventstore.Usage) bool { return u.Project != project }))
	if months != len(m.used) {
		t.Fatalf("%d months of use, want %d", months, len(m.used))
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := snap.RowCount(t.Context())
	if err := errors.Join(err, snap.Close()); err != nil || rows != snap.Mark().Rows {
		t.Fatalf("%d rows, counted %d: %v", rows, snap.Mark().Rows, err)
	}
}

// exportOf writes each thing stored of a person in a line.
func exportOf(ctx context.Context, s *eventstore.Store, project uint32, p eventstore.Person) (list []string, err error) {
	err = s.ExportPerson(ctx, project, p, func(x eventstore.Exported) error {
		switch {
		case x.Event != nil:
			list = append(list, fmt.Sprintf("event %d %s", x.Event.Position, x.Event.Event))
		case x.Link != nil:
			list = append(list, fmt.Sprintf("link %d %s %s", x.Link.Position, x.Link.AnonID, x.Link.UserID))
		case x.Trait != nil:
			list = append(list, fmt.Sprintf("trait %d", x.Trait.Position))
		default:
			list = append(list, fmt.Sprintf("quarantined %d", x.Quarantined.Position))
		}
		return nil
	})
	return list, err
}

func checkModel(t *rapid.T, s *eventstore.Store, project uint32, m *model) {
	span := `"from":"2024-03-01T00:00:00Z","to":"2024-03-04T00:00:00Z"`
	ask := func(body string) map[string]any {
		answer, err := runFor(t.Context(), s, project, body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return answer
	}
	compare := func(what string, got, wanted any) {
		if show(got) != show(wanted) {
			t.Fatalf("%s: got %s, want %s", what, show(got), show(wanted))
		}
	}
	compare("trend", values(ask(`{"type":"trend","interval":"hour","measure":"persons","event":"a",`+span+`}`)), m.trend("a", modelDays*24))
	for _, hours := range []int{1, 5, 72} {
		for _, steps := range [][]string{{"a", "b", "c"}, {"a", "a", "b"}, {"b", "identify"}} {
			var persons []any
			for _, step := range ask(fmt.Sprintf(`{"type":"funnel","window":"%dh","steps":[%s],%s}`, hours, stepsOf(steps), span))["steps"].([]any) {
				persons = append(persons, step.(map[string]any)["persons"])
			}
			compare(fmt.Sprint("funnel ", steps, hours), persons, m.funnel(steps, int64(hours)*3_600_000))
		}
	}
	for _, back := range []string{"a", "b"} {
		var cohorts []string
		for _, c := range ask(fmt.Sprintf(`{"type":"retention","start_event":"a","return_event":%q,"interval":"day","periods":2,%s}`, back, span))["cohorts"].([]any) {
			c := c.(map[string]any)
			cohorts = append(cohorts, show([]any{c["size"], c["returned"]}))
		}
		compare("retention of "+back, cohorts, m.retention("a", back, modelDays, 2))
	}
	compare("events", personsOf(ask(`{"type":"events","limit":200,`+span+`}`)), m.persons())
}

// persons returns who each event belongs to, without brackets and sorted.
func (m *model) persons() []string {
	var list []string
	for _, e := range m.events {
		p := m.person(e)
		if p[0] == '[' {
			p = e.anon
		}
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

func personsOf(answer map[string]any) []string {
	var list []string
	for _, item := range answer["items"].([]any) {
		list = append(list, item.(map[string]any)["person"].(string))
	}
	slices.Sort(list)
	return list
}

func stepsOf(names []string) string {
	var text strings.Builder
	for i, name := range names {
		if i > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, `{"event":%q}`, name)
	}
	return text.String()
}

func values(answer map[string]any) []any {
	var list []any
	for _, p := range answer["series"].([]any)[0].(map[string]any)["points"].([]any) {
		list = append(list, p.(map[string]any)["value"])
	}
	return list
}
