package quota

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// onItsWay is a chunk that a server has reserved.
type onItsWay struct {
	server int
	bytes  int64
	held   *reservation
	// counted says that the database has counted it.
	counted bool
}

// TestReservationsCountOnce: in whatever order servers read what the database
// has counted, transactions end and reservations are settled, a server never
// takes a chunk for two, and always knows of its own. When it judges it also knows
// all that it has read but what its own transactions under way may have counted.
// One that is alone is exact.
func TestReservationsCountOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := organizationMonth{"o", 202611}
		plans := NewPlans([]Plan{{Name: "all", Storage: 1 << 40}}, "all")
		servers := make([]*Meter, rapid.IntRange(1, 3).Draw(t, "servers"))
		database := rapid.Int64Range(0, 100).Draw(t, "before")
		reads := make([]int64, len(servers)) // what each has read last, which may be old
		stored := make([]int64, len(servers))
		for i := range servers {
			servers[i] = NewMeter(plans, key.month)
			servers[i].setReplays(key.month, map[string]int64{key.organization: database})
			reads[i], stored[i] = database, 0
		}
		before := database
		var under []*onItsWay
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(servers)-1).Draw(t, "server")
			what := rapid.SampledFrom([]string{"read", "reserve", "begin", "commit", "settle"}).Draw(t, "what")
			if len(under) == 0 && what != "read" {
				what = "reserve"
			}
			switch what {
			case "read":
				reads[i] = database
			case "reserve":
				c := &onItsWay{server: i, bytes: rapid.Int64Range(1, 50).Draw(t, "bytes")}
				c.held = &reservation{meter: servers[i], key: key, bytes: c.bytes}
				if err := servers[i].reserveReplay(key, "", reads[i], c.bytes); err != nil {
					t.Fatal(err)
				}
				under = append(under, c)
				least := reads[i]
				for _, c := range under {
					if c.server == i && !c.held.committing {
						least += c.bytes
					}
				}
				if got := servers[i].totalOf(key.organization, key.month).replays.bytes(); got < least {
					t.Fatalf("server %d of %d judges by %d, want at least %d", i, len(servers), got, least)
				}
			case "begin":
				rapid.SampledFrom(under).Draw(t, "chunk").held.commit()
			case "commit":
				if c := rapid.SampledFrom(under).Draw(t, "chunk"); c.held.committing && !c.counted {
					c.counted = true
					database += c.bytes
					stored[c.server] += c.bytes
				}
			case "settle":
				at := rapid.IntRange(0, len(under)-1).Draw(t, "chunk")
				c := under[at]
				c.held.settle(c.counted)
				under = append(under[:at:at], under[at+1:]...)
			}
			for i, m := range servers {
				way := int64(0)
				for _, c := range under {
					if c.server == i && !c.counted {
						way += c.bytes
					}
				}
				got := m.totalOf(key.organization, key.month).replays.bytes()
				if least, most := before+stored[i]+way, database+way; got < least || got > most {
					t.Fatalf("server %d of %d counts %d, want %d to %d", i, len(servers), got, least, most)
				}
			}
		}
	})
}

// TestAChunkTakesWhatIsLeft: of what is on its way together, one goes past the
// limit, also for events; what is given back may be had again, and a COMMIT that
// was not heard of counts from the next reading on.
func TestAChunkTakesWhatIsLeft(t *testing.T) {
	key := organizationMonth{"o", 202611}
	m := NewMeter(NewPlans([]Plan{{Name: "kilo", Storage: 1000, Trial: true}}, "kilo"), key.month)
	event := Addition{Organization: key.organization, Project: 1, At: key.month.Begin().UnixMilli(), Events: 1, Bytes: 10}
	reserve := func(counted int64) error { return m.reserveReplay(key, "", counted, 990) }
	give := func(began bool) {
		one := &reservation{meter: m, key: key, bytes: 990}
		if began {
			one.commit()
		}
		one.settle(false)
	}
	must := func(what string, err error, want api.Code) {
		t.Helper()
		if (err == nil) != (want == "") || err != nil && fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	must("the first", reserve(0), "")
	must("one beside it", reserve(0), "")
	must("one more", reserve(0), api.CodeTrialQuotaExceeded)
	must("an event", m.Admit(event), api.CodeTrialQuotaExceeded)
	give(false)
	must("an event, when one was given back", m.Admit(event), "")
	must("a chunk, when that was the last", reserve(0), api.CodeTrialQuotaExceeded)
	give(true) // not heard of, and counted
	must("another event", m.Admit(event), "")
	must("a chunk, when the one is read of", reserve(990), api.CodeTrialQuotaExceeded)
	must("an event then", m.Admit(event), api.CodeTrialQuotaExceeded)
}
