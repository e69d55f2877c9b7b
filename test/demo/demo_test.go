package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

const shopFile = "../../examples/shop/ecom.csv.gz"

// binaryVariable names a binary that is built already.
const binaryVariable = "ACTIONPULSE_BINARY"

// TestDemo runs a small demo with the real binary: two kills, two passes, and
// nothing lost or doubled.
func TestDemo(t *testing.T) {
	t.Parallel()
	binary := os.Getenv(binaryVariable)
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "actionpulse")
		out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", binary, "github.com/actionpulse/actionpulse/cmd/actionpulse").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	var out strings.Builder
	err := run(t.Context(), options{binary: binary, file: shopFile, lines: 1500, seed: 3}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kill -9 while events", "kill -9 while orders", "kills      2;", "18 of 18 names", "PASS in "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
}

// TestShop: the file is what its README says.
func TestShop(t *testing.T) {
	t.Parallel()
	s, err := readShop(shopFile, 0)
	if err != nil {
		t.Fatal(err)
	}
	users, sessions, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	first, last := s.events[0].Time, s.events[0].Time
	type content struct {
		name, user, session, platform string
		at                            time.Time
	}
	alike := map[content]int{}
	for _, e := range s.events {
		users[e.UserID], sessions[e.SessionID], ids[e.ID] = true, true, true
		if e.Time.Before(first) {
			first = e.Time
		}
		if e.Time.After(last) {
			last = e.Time
		}
		platform, _ := e.Properties["platform"].(string)
		alike[content{e.Name, e.UserID, e.SessionID, platform, e.Time}]++
	}
	for what, c := range map[string][2]int{
		"events":      {len(s.events), 31_106},
		"ids":         {len(ids), 31_106},
		"users":       {len(users), 600},
		"sessions":    {len(sessions), 3605},
		"names":       {len(s.names), 19},
		"purchase":    {int(s.names[purchase]), 470},
		"add_to_cart": {int(s.names["add_to_cart"]), 1346},
		"views":       {int(s.names["product_view"]), 6851},
		"orders":      {s.orders, 470},
		"mails":       {s.mails, 235},
		"customers":   {len(s.customers), 328},
		"alike":       {len(s.events) - len(alike), 30},
	} {
		if c[0] != c[1] {
			t.Errorf("%d %s, want %d", c[0], what, c[1])
		}
	}
	if got := first.Format(time.DateTime) + " " + last.Format(time.DateTime); got != "2024-01-04 11:45:38 2024-06-29 22:02:40" {
		t.Errorf("from and to: %s", got)
	}
	again, err := readShop(shopFile, 100)
	if err != nil || len(again.events) != 100 || again.events[99].ID != s.events[99].ID || again.events[99].ID == again.events[98].ID {
		t.Errorf("read again: %v", err)
	}
	for _, c := range s.customers {
		if c.left() <= 0 {
			t.Errorf("%s has to pay more than there is", c.id)
		}
	}
}

// right is a verdict in which nothing is wrong.
func right(s *shop) *verdict {
	f := &found{names: maps.Clone(s.names), right: len(s.customers), runs: int64(s.mails), succeeded: int64(s.mails)}
	v := &verdict{shop: s, found: f, killed: 2}
	f.count = [kinds]int64{topUps: int64(len(s.customers)), charges: int64(s.orders), runs: int64(s.mails)}
	for k, l := range v.lines() {
		f.moved[k] = l.expectedMoved
		v.counts[k] = counted{attempts: l.sent, suppressed: l.expected}
	}
	return v
}

// TestVerdict: each thing that must not happen is noticed.
func TestVerdict(t *testing.T) {
	t.Parallel()
	s, err := readShop(shopFile, 1500)
	if err != nil {
		t.Fatal(err)
	}
	if faults := right(s).faults(); len(faults) > 0 {
		t.Fatalf("nothing is wrong, and yet: %v", faults)
	}
	for want, spoil := range map[string]func(*verdict){
		"events named purchase: ":       func(v *verdict) { v.found.names[purchase]-- },
		"events: ":                      func(v *verdict) { v.found.names["home"]++ },
		"names of events, expected":     func(v *verdict) { v.found.names["unheard"] = 0 },
		"charges: ":                     func(v *verdict) { v.found.count[charges]++ },
		"top-ups: 1 were refused":       func(v *verdict) { v.counts[topUps].refused++ },
		"credits were moved":            func(v *verdict) { v.found.moved[charges]-- },
		"flow runs succeeded":           func(v *verdict) { v.found.succeeded-- },
		"were paid":                     func(v *verdict) { v.found.count[runs]++ },
		"repeats were recognised":       func(v *verdict) { v.counts[events].suppressed-- },
		"attempts for":                  func(v *verdict) { v.counts[runs].attempts = 0 },
		"customers have the right":      func(v *verdict) { v.found.right-- },
		"the server was killed 1 times": func(v *verdict) { v.killed-- },
		"not whole":                     func(v *verdict) { v.verified = errors.New("a difference") },
	} {
		v := right(s)
		spoil(v)
		if err := errors.Join(v.faults()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		var out strings.Builder
		if err := newScreen(&out, nil).end(v, faultproxy.Counts{}, v.faults()); err != nil || !strings.Contains(out.String(), "FAIL in") {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}
