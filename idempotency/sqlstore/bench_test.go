package sqlstore_test

import (
	"database/sql"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
)

// onBothB runs a benchmark on both engines, with their own clocks.
func onBothB(b *testing.B, bench func(b *testing.B, f *fixture)) {
	b.Helper()
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, engines[name], ownClock)
			f.fill(b)
			for i := range 20 { // opens connections, and writes what fill has left to be written
				_, err := f.Run(b.Context(), request(idempotency.CreditMovement(day), "warm-"+strconv.Itoa(i), "{}"), nothing)
				must(b, err)
			}
			bench(b, f)
		})
	}
}

// nothing is work that does nothing: what is measured is the key.
func nothing(*sql.Tx) (idempotency.Answer, error) { return ok("1"), nil }

func BenchmarkRunNew(b *testing.B) {
	onBothB(b, func(b *testing.B, f *fixture) {
		r := request(idempotency.CreditMovement(day), "", `{"credit_type":"main","amount":"5"}`)
		for i := 0; b.Loop(); i++ {
			r.Key = "new-" + strconv.Itoa(i)
			if result, err := f.Run(b.Context(), r, nothing); err != nil || result.Replayed {
				b.Fatal(result, err)
			}
		}
	})
}

func BenchmarkRunNewParallel(b *testing.B) {
	onBothB(b, func(b *testing.B, f *fixture) {
		var n atomic.Int64
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			r := request(idempotency.CreditMovement(day), "", `{"credit_type":"main","amount":"5"}`)
			for pb.Next() {
				r.Key = "new-" + strconv.FormatInt(n.Add(1), 10)
				if result, err := f.Run(b.Context(), r, nothing); err != nil || result.Replayed {
					b.Error(result, err)
				}
			}
		})
	})
}

func BenchmarkRunReplay(b *testing.B) {
	onBothB(b, func(b *testing.B, f *fixture) {
		r := first(b, f)
		for b.Loop() {
			if result, err := f.Run(b.Context(), r, nothing); err != nil || !result.Replayed {
				b.Fatal(result, err)
			}
		}
	})
}

// first takes the key whose repeats are measured.
func first(b *testing.B, f *fixture) idempotency.Request {
	b.Helper()
	r := request(idempotency.CreditMovement(day), "replay", `{"credit_type":"main","amount":"5"}`)
	_, err := f.Run(b.Context(), r, nothing)
	must(b, err)
	return r
}

func BenchmarkJudgeReplay(b *testing.B) {
	onBothB(b, func(b *testing.B, f *fixture) {
		r := first(b, f)
		for b.Loop() {
			if result, fresh, err := f.Judge(b.Context(), r); err != nil || fresh || !result.Replayed {
				b.Fatal(result, err)
			}
		}
	})
}

func BenchmarkJudgeReplayParallel(b *testing.B) {
	onBothB(b, func(b *testing.B, f *fixture) {
		r := first(b, f)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if result, fresh, err := f.Judge(b.Context(), r); err != nil || fresh || !result.Replayed {
					b.Error(result, err)
				}
			}
		})
	})
}
