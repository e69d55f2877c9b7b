package intakestore_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// BenchmarkCommit writes groups of several requests of 500 new items with
// random ids each, as many as fill the engine's memory a few times.
func BenchmarkCommit(b *testing.B) {
	for _, requests := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("requests=%d", requests), func(b *testing.B) { benchCommit(b, requests) })
	}
}

func benchCommit(b *testing.B, requests int) {
	const items = 500
	store := open(b, create(b))
	defer closeStore(b, store)
	source := rand.New(rand.NewPCG(1, 1))
	encoded := bytes.Repeat([]byte("x"), 180)
	cpu, n := time.Duration(0), 0
	for b.Loop() {
		g := intakestore.Group{Received: int64(n), Window: window, Entries: make([]intakestore.Entry, requests)}
		for i := range g.Entries {
			g.Entries[i].Header = record.Record{Project: 1, KeyKind: record.KeyServer, Key: 1}
			for range items {
				g.Entries[i].Items = append(g.Entries[i].Items, intakestore.Item{EventID: newID(source), Claimed: true, Encoded: encoded})
			}
		}
		before := cpuTime(b)
		commit(b, store, g)
		cpu += cpuTime(b) - before
		n += requests * items
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(n), "cpu-ns/item")
}

// cpuTime returns the processor time this process has used.
func cpuTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
