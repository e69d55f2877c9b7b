package quota

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// clock is a time that stands still until it is moved.
type clock struct{ now time.Time }

func setup(t *testing.T) (*Limiter, *clock) {
	t.Helper()
	c := &clock{time.Unix(1_700_000_000, 0)}
	return New(Params{
		Key:        Limit{Rate: 10, Burst: 20},
		Browser:    Limit{Rate: 1, Burst: 3},
		MaxBudgets: 8,
		Now:        func() time.Time { return c.now },
	}), c
}

// admitted is how many of n equal requests are let through.
func admitted(l *Limiter, r Request, n int) int {
	count := 0
	for range n {
		if l.Admit(r) == nil {
			count++
		}
	}
	return count
}

func TestKeyBudgetIsTheBurstThenTheRate(t *testing.T) {
	l, c := setup(t)
	if got := admitted(l, Request{Key: 1}, 100); got != 20 {
		t.Errorf("at once: admitted %d, want the burst of 20", got)
	}
	c.now = c.now.Add(time.Second)
	if got := admitted(l, Request{Key: 1}, 100); got != 10 {
		t.Errorf("a second later: admitted %d, want the rate of 10", got)
	}
	if got := admitted(l, Request{Key: 2}, 100); got != 20 {
		t.Errorf("another key: admitted %d, want a full burst", got)
	}
}

func TestRefusalNamesTheWait(t *testing.T) {
	l, _ := setup(t)
	slow, one := 0.25, 1
	r := Request{Key: 1, Rate: &slow, Burst: &one}
	if err := l.Admit(r); err != nil {
		t.Fatal(err)
	}
	f, ok := errors.AsType[*fault.Error](l.Admit(r))
	if !ok || f.Code != api.CodeRateLimited || f.RetryAfter != 4*time.Second {
		t.Errorf("got %+v, want rate_limited after 4s", f)
	}
	f, _ = errors.AsType[*fault.Error](l.Admit(Request{Key: 1, Rate: &slow, Burst: &one}))
	if f == nil || f.RetryAfter != 4*time.Second {
		t.Errorf("a refused request made the wait longer: %+v", f)
	}
}

func TestWaitIsAtLeastASecond(t *testing.T) {
	l, _ := setup(t)
	admitted(l, Request{Key: 1}, 20)
	f, ok := errors.AsType[*fault.Error](l.Admit(Request{Key: 1}))
	if !ok || f.RetryAfter != time.Second {
		t.Errorf("got %+v, want a wait of 1s", f)
	}
}

func TestBudgetOfACredential(t *testing.T) {
	l, c := setup(t)
	zero, two, five := 0.0, 2.0, 5
	if got := admitted(l, Request{Key: 1, Rate: &zero}, 1000); got != 1000 {
		t.Errorf("rate 0 admitted %d of 1000", got)
	}
	if got := admitted(l, Request{Key: 2, Rate: &two, Burst: &five}, 100); got != 5 {
		t.Errorf("burst 5 admitted %d", got)
	}
	c.now = c.now.Add(time.Second)
	if got := admitted(l, Request{Key: 2, Rate: &two, Burst: &five}, 100); got != 2 {
		t.Errorf("rate 2 admitted %d after a second", got)
	}
	c.now = c.now.Add(time.Second)
	if got := admitted(l, Request{Key: 2}, 100); got != 2 {
		t.Errorf("back at the default without waiting: admitted %d, want the 2 regained", got)
	}
}

func TestBrowserAddresses(t *testing.T) {
	l, _ := setup(t)
	at := func(s string) Request {
		return Request{Key: 1, Browser: true, Address: netip.MustParseAddr(s)}
	}
	if got := admitted(l, at("192.0.2.1"), 10); got != 3 {
		t.Errorf("first address: %d, want 3", got)
	}
	if got := admitted(l, at("192.0.2.2"), 10); got != 3 {
		t.Errorf("second address: %d, want 3", got)
	}
	if got := admitted(l, at("2001:db8::1"), 10) + admitted(l, at("2001:db8::2"), 10); got != 3 {
		t.Errorf("two addresses of one /64: %d, want 3 together", got)
	}
	if got := admitted(l, at("::ffff:192.0.2.1"), 10); got != 0 {
		t.Errorf("the first address, mapped: %d, want 0", got)
	}
	other := at("192.0.2.1")
	other.Key = 2
	if got := admitted(l, other, 10); got != 3 {
		t.Errorf("same address, other token: %d, want 3", got)
	}
}

func TestRefusedByOneTakesNothingFromTheOther(t *testing.T) {
	l, c := setup(t)
	r := Request{Key: 1, Browser: true, Address: netip.MustParseAddr("192.0.2.1")}
	admitted(l, r, 1000)
	if got := admitted(l, Request{Key: 1}, 100); got != 17 {
		t.Errorf("the key has %d left after 3 admitted and 997 refused, want 17", got)
	}
	c.now = c.now.Add(100 * time.Second)
	admitted(l, Request{Key: 1}, 20)
	admitted(l, r, 100)
	c.now = c.now.Add(200 * time.Millisecond)
	if got := admitted(l, r, 100); got != 2 {
		t.Errorf("the address lost requests that the key refused: %d, want 2", got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	l, _ := setup(t)
	hot := Request{Key: -1}
	count := 0
	for i := range int64(1000) {
		admitted(l, Request{Key: i}, 1)
		count += admitted(l, hot, 1)
		if size := l.keys.size(); size > 8 {
			t.Fatalf("%d budgets kept, want at most 8", size)
		}
	}
	if count != 20 {
		t.Errorf("a budget in use was let go: %d admitted, want 20", count)
	}
}

func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "192.0.2.1:5", nil, "192.0.2.1"},
		{"peer is not trusted", "192.0.2.1:5", []string{"198.51.100.1"}, "192.0.2.1"},
		{"one proxy", "10.0.0.1:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"client's own lie is not believed", "10.0.0.1:5", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies, two headers", "10.0.0.1:5", []string{"198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		{"all trusted", "10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"not an address", "10.0.0.1:5", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		{"with a port", "10.0.0.1:5", []string{"198.51.100.1:99"}, "198.51.100.1"},
		{"IPv6", "[fd00::1]:5", []string{"[2001:db8::7]:99"}, "2001:db8::7"},
		{"IPv6 in brackets", "[fd00::1]:5", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"mapped peer", "[::ffff:10.0.0.1]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"empty header", "10.0.0.1:5", []string{""}, "10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ClientAddress(c.peer, c.forwarded, trusted)
			if got.String() != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if ClientAddress("pipe", nil, trusted).IsValid() {
		t.Error("a peer that is no address gave a valid one")
	}
}
