package eventstore_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// benchRecords makes records of 500 items whose ids and times look like a
// busy site's.
func benchRecords(position uint64, records int) []record.Record {
	list := make([]record.Record, records)
	for i := range list {
		r := record.Record{
			Position: position, Received: benchTime + int64(position/50), Window: window, Store: storeID,
			Project: 1, KeyKind: record.KeyServer, Key: 7,
		}
		for j := range 500 {
			n := position + uint64(j)
			h := n * 0x9E3779B97F4A7C15
			it := record.Item{
				Type: record.ItemEvent, Claimed: true, Fingerprint: uint32(h >> 7), TS: r.Received - int64(h%1000), HasTS: true,
				ClientTS:   r.Received - int64(h%1000),
				Event:      benchEvents[h%uint64(len(benchEvents))],
				AnonID:     fmt.Sprintf("anon-%016x-%08d", h%200_000*0x9E37, h%200_000),
				SessionID:  fmt.Sprintf("session-%020d", h%900_000),
				Properties: fmt.Appendf(nil, `{"platform":"%s","price":%d.5,"path":"/product/%d","referrer":"https://example.com/"}`, benchPlatforms[h%3], h%100, h%5000),
			}
			for k := range 8 {
				it.EventID[k] = byte(h >> (8 * k))
				it.EventID[k+8] = byte((h * 31) >> (8 * k))
			}
			r.Items = append(r.Items, it)
		}
		position = r.Last() + 1
		list[i] = r
	}
	return list
}

const benchTime = 1_700_000_000_000

var (
	benchEvents    = []string{"page_viewed", "page_viewed", "page_viewed", "product_viewed", "cart_added", "checkout_started", "purchase"}
	benchPlatforms = []string{"web", "ios", "android"}
)

// BenchmarkApply measures transactions of several sizes, checkpoints included.
func BenchmarkApply(b *testing.B) {
	for _, rows := range []int{5_000, 20_000, 60_000, 125_000, 250_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) { benchApply(b, rows) })
	}
}

func benchApply(b *testing.B, rows int) {
	s := open(b, eventstore.Options{})
	position, cpu := uint64(1), time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		records := benchRecords(position, rows/500)
		b.StartTimer()
		before := cpuTime(b)
		mark, err := s.Apply(b.Context(), eventstore.ApplyParams{Records: records})
		if err != nil {
			b.Fatal(err)
		}
		position = mark.Position + 1
		cpu += cpuTime(b) - before
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(position-1), "cpu-ns/row")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(position-1), "ns/row")
}

// cpuTime returns the processor time this process has used.
func cpuTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
