package intake

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

type nobody struct{}

func (nobody) Items(Source, Counts)          {}
func (nobody) Rejected(api.RejectCode)       {}
func (nobody) ClockJumped()                  {}
func (nobody) Group(int, int, time.Duration) {}

// BenchmarkDecide is the sequencer's own work on groups of new items: judging,
// counting and applying them, without waiting for the disk.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []struct{ requests, items int }{{64, 1}, {8, 500}} {
		b.Run(fmt.Sprintf("%dx%d", size.requests, size.items), func(b *testing.B) {
			benchmarkDecide(b, size.requests, size.items)
		})
	}
}

func benchmarkDecide(b *testing.B, requests, items int) {
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
	q := benchSequencer(store)
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
		for range requests {
			sub := benchSubmission(encoded, items, &next)
			g.add(sub)
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(requests), "ns/request")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(requests*items), "ns/item")
}

func benchSequencer(store *intakestore.Store) *sequencer {
	clock := SystemClock{}
	return &sequencer{
		store: store, window: (48 * time.Hour).Milliseconds(), clock: &windowClock{clock: clock}, elapsed: clock.Elapsed,
		guard: func() error { return nil }, fatal: func(err error) { panic(err) }, observer: nobody{}, decider: dedup.NewGroup(store),
	}
}

func benchSubmission(encoded []byte, items int, next *uint64) *submission {
	sub := &submission{header: record.Record{Project: 1, KeyKind: record.KeyServer}, items: make([]intakestore.Item, items)}
	for i := range sub.items {
		*next++
		it := &sub.items[i]
		it.Claimed, it.Encoded = true, encoded
		binary.BigEndian.PutUint64(it.EventID[:], *next*0x9E3779B97F4A7C15)
	}
	return sub
}
