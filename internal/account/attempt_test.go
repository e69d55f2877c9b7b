package account

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// watch is a time that stands still until it is moved.
type watch struct{ now time.Time }

func (w *watch) clock() time.Time { return w.now }

func newTestAttempts(p AttemptParams) (*attempts, *watch) {
	w := &watch{time.Unix(1_700_000_000, 0)}
	return newAttempts(p, w.clock), w
}

var somewhere = netip.MustParseAddr("192.0.2.1")

// fail is how many of n attempts are let through, all of them wrong.
func fail(a *attempts, email string, from netip.Addr, n int) int {
	through := 0
	for range n {
		if a.begin(email, from) == nil {
			through++
		}
	}
	return through
}

func TestAttemptsAreFreeThenSlow(t *testing.T) {
	t.Parallel()
	a, w := newTestAttempts(AttemptParams{})
	if n := fail(a, "a@b", somewhere, 50); n != 10 {
		t.Errorf("%d at once, want 10", n)
	}
	f, ok := errors.AsType[*fault.Error](a.begin("a@b", somewhere))
	if !ok || f.Code != api.CodeRateLimited || f.RetryAfter != 30*time.Second {
		t.Errorf("got %+v, want rate_limited after 30s", f)
	}
	w.now = w.now.Add(30*time.Second - time.Millisecond)
	if n := fail(a, "a@b", somewhere, 5); n != 0 {
		t.Errorf("%d before the time, want none", n)
	}
	w.now = w.now.Add(2 * time.Millisecond)
	if n := fail(a, "a@b", somewhere, 5); n != 1 {
		t.Errorf("%d after 30 seconds, want 1: a refused attempt prolongs nothing", n)
	}
	w.now = w.now.Add(time.Hour)
	if n := fail(a, "a@b", somewhere, 50); n != 10 {
		t.Errorf("%d after an hour, want 10", n)
	}
}

func TestAttemptsOfOneEmailFromManyAddresses(t *testing.T) {
	t.Parallel()
	a, _ := newTestAttempts(AttemptParams{})
	through, at := 0, somewhere
	for range 50 {
		through += fail(a, "a@b", at, 1)
		at = at.Next()
	}
	if through != 10 {
		t.Errorf("%d went through, want 10", through)
	}
	if n := fail(a, "other@b", somewhere, 5); n != 5 {
		t.Errorf("another email: %d of 5", n)
	}
}

func TestAttemptsOfManyEmailsFromOneAddress(t *testing.T) {
	t.Parallel()
	a, _ := newTestAttempts(AttemptParams{})
	through := 0
	for i := range 50 {
		// The addresses of one /64 are one client's.
		from := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)})
		through += fail(a, strings.Repeat("x", i)+"@b", from, 1)
	}
	if through != 10 {
		t.Errorf("%d went through, want 10", through)
	}
	if n := fail(a, "a@b", netip.MustParseAddr("2001:db8:0:1::"), 5); n != 5 {
		t.Errorf("the next /64: %d of 5", n)
	}
	if fail(a, "c@b", somewhere, 7)+fail(a, "d@b", netip.MustParseAddr("::ffff:192.0.2.1"), 7) != 10 {
		t.Error("an IPv4 address in IPv6 form is another client")
	}
}

func TestSuccessClearsTheEmailOnly(t *testing.T) {
	t.Parallel()
	a, _ := newTestAttempts(AttemptParams{})
	fail(a, "a@b", somewhere, 9)
	if err := a.begin("a@b", somewhere); err != nil {
		t.Fatal(err)
	}
	a.succeed("a@b", somewhere)
	if n := fail(a, "a@b", netip.MustParseAddr("192.0.2.2"), 50); n != 10 {
		t.Errorf("the email has %d left, want 10", n)
	}
	if n := fail(a, "c@b", somewhere, 50); n != 1 {
		t.Errorf("the address has %d left, want 1", n)
	}
}

func TestAttemptsNeedLittleMemory(t *testing.T) {
	t.Parallel()
	a, _ := newTestAttempts(AttemptParams{MaxSuspects: 10})
	from := somewhere
	for i := range 1000 {
		fail(a, strings.Repeat("x", i)+"@b", from, 1)
		from = from.Next()
		if n := len(a.emails.young) + len(a.emails.old); n > 10 {
			t.Fatalf("%d emails are remembered", n)
		}
		if n := len(a.addresses.young) + len(a.addresses.old); n > 10 {
			t.Fatalf("%d addresses are remembered", n)
		}
	}
}

// TestRefusedAttemptsDriveOutNobody: what an attacker can do without being
// counted must not make the failures of a victim forgotten.
func TestRefusedAttemptsDriveOutNobody(t *testing.T) {
	t.Parallel()
	a, _ := newTestAttempts(AttemptParams{MaxSuspects: 10})
	fail(a, "victim@b", somewhere, 10)
	spent := somewhere.Next()
	for range 10 {
		fail(a, "attacker@b", spent, 1)
	}
	left := spent.Next()
	for i := range 100 {
		if fail(a, strings.Repeat("x", i)+"@b", spent, 1) != 0 {
			t.Fatal("a spent address has an attempt left")
		}
		undone := strings.Repeat("y", i) + "@b"
		if err := a.begin(undone, left); err != nil {
			t.Fatal(err)
		}
		a.undo(undone, left)
		if fail(a, "attacker@b", netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), 1) != 0 {
			t.Fatal("a spent email has an attempt left")
		}
	}
	if n := fail(a, "victim@b", left, 20); n != 0 {
		t.Errorf("the victim's email got %d more attempts", n)
	}
	if n := fail(a, "other@b", somewhere, 20); n != 0 {
		t.Errorf("the victim's address got %d more attempts", n)
	}
}

// TestAttemptsNeverExceedTheBudget: whatever the order of tries, successes,
// returns and waits, failures of one email are at most those free and one for
// each interval since.
func TestAttemptsNeverExceedTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, w := newTestAttempts(AttemptParams{FreeFailures: 3, FailureInterval: time.Minute})
		began, failures := w.now, 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				if a.begin("a@b", somewhere) == nil {
					failures++
				}
			case 1:
				if a.begin("a@b", somewhere) == nil {
					a.undo("a@b", somewhere)
				}
			case 2:
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
			}
			if most := 3 + w.now.Sub(began).Minutes(); float64(failures) > most+1e-6 {
				t.Fatalf("%d failures, want at most %f", failures, most)
			}
		}
	})
}
