package intake

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/record"
)

type nobody struct{}

func (nobody) Items(Source, Counts)          {}
func (nobody) Rejected(api.RejectCode)       {}
func (nobody) ClockJumped()                  {}
func (nobody) Group(int, int, time.Duration) {}

// BenchmarkDecide is the sequencer's own work on groups of new items: judging,
// counting and applying them, without waiting for the disk; without a meter,
// and under a plan with no limit and with limits.
func BenchmarkDecide(b *testing.B) {
	meter := quota.NewMeter(quota.NewPlans([]quota.Plan{{Name: "limited", Events: 1e15, Storage: 1e15}, {Name: "unlimited"}}, ""), 202001)
	for _, size := range []struct{ requests, items int }{{64, 1}, {8, 500}} {
		for _, plan := range []string{"", "unlimited", "limited"} {
			b.Run(fmt.Sprintf("%dx%d/%s", size.requests, size.items, cmp.Or(plan, "none")), func(b *testing.B) {
				q := &sequencer{quota: meter}
				if plan == "" {
					q.quota = nil
				}
				benchmarkDecide(b, q, benchGroup{size.requests, size.items, plan})
			})
		}
	}
}

// benchGroup is a group of requests with as many items each.
type benchGroup struct {
	requests, items int
	plan            string
}

func benchmarkDecide(b *testing.B, q *sequencer, size benchGroup) {
	dir := b.TempDir()
	options := intakestore.Options{
		Dir: filepath.Join(dir, "intake"), Mark: filepath.Join(dir, "ACKNOWLEDGED"),
		Log: slog.New(slog.DiscardHandler), Fatal: func(err error) { b.Fatal(err) },
	}
	if err := intakestore.Create(options, [16]byte{7}, intakestore.State{}); err != nil {
		b.Fatal(err)
	}
	store, err := intakestore.Open(options)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // nothing of it is used any more
	benchSequencer(q, store)
	waits := make(chan *intakestore.Pending, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := range waits {
			if err := p.Wait(); err != nil {
				b.Error(err)
			}
		}
	}()
	encoded, next := make([]byte, 200), uint64(0)
	for b.Loop() {
		b.StopTimer()
		g := &group{}
		for range size.requests {
			g.add(benchSubmission(encoded, size, &next))
		}
		b.StartTimer()
		if err := q.decide(g); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		waits <- g.pending
		b.StartTimer()
	}
	close(waits)
	<-done
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.requests), "ns/request")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.requests*size.items), "ns/item")
}

func benchSequencer(q *sequencer, store *intakestore.Store) {
	clock := SystemClock{}
	q.store, q.window, q.clock, q.elapsed = store, (48 * time.Hour).Milliseconds(), newWindowClock(clock, 0), clock.Elapsed
	q.guard, q.fatal = func() error { return nil }, func(err error) { panic(err) }
	q.observer, q.decider = nobody{}, dedup.NewGroup(store)
}

func benchSubmission(encoded []byte, size benchGroup, next *uint64) *submission {
	src := Source{Project: 1, KeyKind: record.KeyServer, Organization: "01980000-0000-7000-8000-00000000000a", Plan: size.plan}
	sub := &submission{header: header(src, record.Clock{}), items: make([]intakestore.Item, size.items), charge: src.charge()}
	for i := range sub.items {
		*next++
		it := &sub.items[i]
		it.Claimed, it.Encoded = true, encoded
		binary.BigEndian.PutUint64(it.EventID[:], *next*0x9E3779B97F4A7C15)
	}
	return sub
}
