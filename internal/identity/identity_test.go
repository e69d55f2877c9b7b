package identity_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/identity"
)

func TestNumbers(t *testing.T) {
	a, b := identity.NewNumberer([16]byte{1}), identity.NewNumberer([16]byte{2})
	numbers := map[int64]string{}
	for name, n := range map[string]int64{
		"user":                a.User(1, "x"),
		"anon":                a.Anon(1, "x"),
		"another project":     a.User(2, "x"),
		"another id":          a.User(1, "y"),
		"another store":       b.User(1, "x"),
		"id with NUL":         a.User(1, "x\x00"),
		"project 256, no id":  a.User(256, ""),
		"project 1, id \\x00": a.User(1, "\x00"),
	} {
		if other, ok := numbers[n]; ok {
			t.Errorf("%s and %s have one number", name, other)
		}
		numbers[n] = name
	}
	if a.User(1, "x") != identity.NewNumberer([16]byte{1}).User(1, "x") {
		t.Error("a number is not the same twice")
	}
}

// Whatever the links: the spans cover all time without overlap, and each
// moment belongs to the user the rule names, however the links are ordered.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		links := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) identity.Link {
			return identity.Link{
				UserID: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user"),
				TS:     rapid.Int64Range(0, 6).Draw(t, "ts"),
			}
		}), 1, 6).Draw(t, "links")
		for i := range links {
			links[i].Seq = uint64(i + 1)
		}
		spans := identity.Spans(rapid.Permutation(links).Draw(t, "order"))
		if spans[0].From != math.MinInt64 || spans[len(spans)-1].To != math.MaxInt64 {
			t.Fatalf("not all time: %+v", spans)
		}
		for i := 1; i < len(spans); i++ {
			if spans[i].From != spans[i-1].To {
				t.Fatalf("gap or overlap: %+v", spans)
			}
		}
		for ts := int64(-1); ts <= 7; ts++ {
			if got, wanted := userAt(spans, ts), owner(links, ts); got != wanted {
				t.Fatalf("at %d: %s, want %s; %+v", ts, got, wanted, links)
			}
		}
	})
}

func userAt(spans []identity.Span, ts int64) string {
	for _, s := range spans {
		if s.From <= ts && ts < s.To {
			return s.UserID
		}
	}
	return ""
}

// owner is the rule as it is told: the user most recently linked at or before
// the moment, else the earliest linked after it.
func owner(links []identity.Link, ts int64) string {
	best := -1
	for i, l := range links {
		if l.TS <= ts && (best < 0 || l.TS >= links[best].TS) {
			best = i
		}
	}
	if best >= 0 {
		return links[best].UserID
	}
	for i, l := range links {
		if best < 0 || l.TS < links[best].TS {
			best = i
		}
	}
	return links[best].UserID
}

func TestNoLinksNoSpans(t *testing.T) {
	if spans := identity.Spans(nil); len(spans) != 0 {
		t.Errorf("%+v", spans)
	}
}

func BenchmarkNumber(b *testing.B) {
	n := identity.NewNumberer([16]byte{1})
	for b.Loop() {
		n.Anon(1, "0190f3c2-7b1e-7c3a-9a55-0123456789ab")
	}
}
