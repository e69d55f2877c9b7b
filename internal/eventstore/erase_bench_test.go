package eventstore_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore"
)

// BenchmarkErasure measures what a deletion costs the writer of a store with a
// million rows, 10,000 of them the person's, by id and by a link: how long
// the erase record takes, how long the rewrite does, and the longest time that
// a record with one event waits meanwhile.
func BenchmarkErasure(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		l := personAmongMany(b)
		b.StartTimer()
		before, began := markOf(b, l.store).Rows, time.Now()
		l.add(benchTime, erase(ada))
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "erase-ms/op")
		b.ReportMetric(float64(before-markOf(b, l.store).Rows), "erased/op")
		if err := l.store.ForgetTaken(b.Context(), 1, ada, math.MaxInt64); err != nil {
			b.Fatal(err)
		}
		began = time.Now()
		longest := rewriteBeside(b, l)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "rewrite-ms/op")
		b.ReportMetric(float64(longest.Milliseconds()), "longest-wait-ms/op")
	}
}

// personAmongMany stores a million rows, five of every 500 the person's.
func personAmongMany(b *testing.B) *log {
	b.Helper()
	const transactions, each = 10, 200
	l := newLog(b, open(b, eventstore.Options{}))
	l.add(benchTime, alias("device", "ada", benchTime))
	for range transactions {
		records := benchRecords(l.next, each)
		for i := range records {
			for j := range 5 {
				it := &records[i].Items[j*100]
				if it.AnonID = "device"; j%2 == 0 {
					it.UserID = "ada"
				}
			}
		}
		l.next = records[len(records)-1].Last() + 1
		l.apply(records...)
	}
	return l
}

// rewriteBeside rewrites while events are stored one by one, and returns the
// longest time that one took.
func rewriteBeside(b *testing.B, l *log) (longest time.Duration) {
	b.Helper()
	rewritten := make(chan error, 1)
	go func() { rewritten <- l.store.Rewrite(context.Background()) }()
	for {
		began := time.Now()
		l.add(benchTime, event("e", fmt.Sprint("visitor ", l.next), "", benchTime))
		longest = max(longest, time.Since(began))
		select {
		case err := <-rewritten:
			if err != nil {
				b.Fatal(err)
			}
			return longest
		default:
		}
	}
}
