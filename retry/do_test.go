package retry_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/retry"
)

// middle is the randomness that leaves delays without jitter.
func middle() float64 { return 0.5 }

// TestDelaysBounds: the n-th wait is within a quarter of 1 s doubled n-1
// times, never doubled past 30 s.
func TestDelaysBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "n")
		r := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random")
		got := retry.Delays{Rand: func() float64 { return r }}.After(n)
		middle := math.Min(30, math.Pow(2, float64(n-1)))
		if s := got.Seconds(); s < middle*0.75-1e-6 || s > middle*1.25+1e-6 {
			t.Fatalf("wait %d is %v", n, got)
		}
	})
}

func TestDelaysDouble(t *testing.T) {
	t.Parallel()
	d := retry.Delays{Rand: middle}
	var got []time.Duration
	for n := range 8 {
		got = append(got, d.After(n+1))
	}
	want := []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9, 30e9}
	if !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
}

// script plays outcomes one after another, the last one for ever, and notes
// when it was called.
type script struct {
	outcomes []retry.Outcome
	start    time.Time
	at       []time.Duration
}

func (s *script) once(context.Context) (int, retry.Outcome) {
	s.at = append(s.at, time.Since(s.start))
	o := s.outcomes[min(len(s.at), len(s.outcomes))-1]
	o.Kind = retry.Event
	return len(s.at), o
}

var (
	ok       = retry.Outcome{Status: 202}
	internal = retry.Outcome{Status: 500, Code: "internal"}
	limited  = retry.Outcome{Status: 429, Code: "rate_limited", RetryAfter: "7"}
	lost     = retry.Outcome{Err: io.ErrUnexpectedEOF}
	refused  = retry.Outcome{Status: 422, Code: "validation_failed"}
)

func TestDoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := script{outcomes: []retry.Outcome{internal, lost, limited, internal, ok}, start: time.Now()}
		var told []int
		n, err := retry.Do(t.Context(), retry.Policy{
			Delays:  retry.Delays{Rand: middle},
			OnRetry: func(r retry.Retry) { told = append(told, r.Attempt) },
		}, s.once)
		if err != nil || n != 5 {
			t.Fatalf("got %d, %v", n, err)
		}
		// 1 s and 2 s of its own, the server's 7 s exactly, then 8 s.
		want := []time.Duration{0, 1e9, 3e9, 10e9, 18e9}
		if !slices.Equal(s.at, want) || !slices.Equal(told, []int{1, 2, 3, 4}) {
			t.Errorf("attempts at %v, want %v; told of %v", s.at, want, told)
		}
	})
}

func TestDoGivesUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		policy   retry.Policy
		outcomes []retry.Outcome
		attempts int
		retry    bool
		wrapped  error
	}{
		{"refused", retry.Policy{}, []retry.Outcome{internal, refused}, 2, false, nil},
		{"attempts", retry.Policy{MaxAttempts: 3}, []retry.Outcome{internal}, 3, true, nil},
		{"attempts, no answer", retry.Policy{MaxAttempts: 1}, []retry.Outcome{lost}, 1, true, io.ErrUnexpectedEOF},
		{"default attempts", retry.Policy{}, []retry.Outcome{internal}, retry.DefaultMaxAttempts, true, nil},
		{"budget", retry.Policy{MaxAttempts: 100, Budget: 15 * time.Second}, []retry.Outcome{internal}, 5, true, nil},
		{"budget, Retry-After", retry.Policy{Budget: 6 * time.Second}, []retry.Outcome{limited}, 1, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.policy.Delays.Rand = middle
				s := script{outcomes: c.outcomes, start: time.Now()}
				_, err := retry.Do(t.Context(), c.policy, s.once)
				e, is := errors.AsType[*retry.Error](err)
				if !is || e.Attempts != c.attempts || len(s.at) != c.attempts || e.Verdict.Retry != c.retry {
					t.Fatalf("after %d calls: %v", len(s.at), err)
				}
				if c.wrapped != nil && !errors.Is(err, c.wrapped) {
					t.Errorf("%v does not wrap %v", err, c.wrapped)
				}
				if c.policy.Budget > 0 && time.Since(s.start) > c.policy.Budget {
					t.Errorf("took %v", time.Since(s.start))
				}
			})
		})
	}
}

// TestDoStops: a caller who leaves is heard at once in the middle of a wait,
// and no further attempt is made.
func TestDoStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() { cancel(left) })
		s := script{outcomes: []retry.Outcome{lost}, start: time.Now()}
		_, err := retry.Do(ctx, retry.Policy{Delays: retry.Delays{Rand: middle}}, s.once)
		if !errors.Is(err, left) || !errors.Is(err, io.ErrUnexpectedEOF) || len(s.at) != 2 {
			t.Errorf("%d attempts, %v", len(s.at), err)
		}
		if took := time.Since(s.start); took != 2500*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// TestDoStopsBetween: a caller who left while a request was running gets its
// result if it succeeded or was refused for good, and no repeat otherwise.
func TestDoStopsBetween(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := script{outcomes: []retry.Outcome{ok}}
	if _, err := retry.Do(ctx, retry.Policy{}, s.once); err != nil {
		t.Errorf("a success: %v", err)
	}
	s = script{outcomes: []retry.Outcome{refused}}
	if _, err := retry.Do(ctx, retry.Policy{}, s.once); !isRetryError(err) {
		t.Errorf("a refusal: %v", err)
	}
	s = script{outcomes: []retry.Outcome{internal}}
	if _, err := retry.Do(ctx, retry.Policy{}, s.once); !errors.Is(err, context.Canceled) || len(s.at) != 1 {
		t.Errorf("a failure: %v", err)
	}
}

func isRetryError(err error) bool {
	_, is := errors.AsType[*retry.Error](err)
	return is
}
