package credit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Nobody waits for company: an op that comes alone is done at once, and alone.
func TestNoWaitWhenIdle(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		for i := range 3 {
			began := time.Now()
			if _, err := move(t.Context(), s, "p", fmt.Sprint("k", i), "{}"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != commit {
				t.Errorf("took %v, a commit takes %v", took, commit)
			}
		}
	})
}

// What arrives while a group is being committed is the next one, in its order.
func TestGroups(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		began := time.Now()
		var all sync.WaitGroup
		for i := range 1 + 64 + 10 {
			all.Go(func() {
				if _, err := move(t.Context(), s, "p", fmt.Sprintf("k%02d", i), "{}"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // it is in the queue
		}
		all.Wait()
		if took := time.Since(began); took != 3*commit {
			t.Errorf("took %v", took)
		}
		if len(p.groups) != 3 || len(p.groups[0]) != 1 || len(p.groups[1]) != 64 || len(p.groups[2]) != 10 {
			t.Fatalf("got %v", p.groups)
		}
		if order := slices.Concat(p.groups...); !slices.IsSorted(order) {
			t.Errorf("the order of arrival is lost: %v", order)
		}
	})
}

// Of fifty requests with one key one is written; the others read what it has
// done, and nobody waits for more than one group.
func TestOneKey(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 4, func(t *testing.T, s *credit.Service) {
		began := time.Now()
		var all sync.WaitGroup
		replays := make([]bool, 50)
		for i := range replays {
			all.Go(func() {
				m, err := move(t.Context(), s, "p", "k", "{}")
				if err != nil || string(m.Answer.Body) != "k" {
					t.Error(m, err)
				}
				replays[i] = m.Replayed
			})
		}
		all.Wait()
		replays = slices.DeleteFunc(replays, func(replayed bool) bool { return replayed })
		if len(replays) != 1 || len(p.groups) != 1 || time.Since(began) != commit {
			t.Errorf("%d first answers, groups %v, %v", len(replays), p.groups, time.Since(began))
		}
	})
}

// A refusal leaves the key free: the next in line goes, with its own body; the
// first that succeeds takes the key, and others conflict.
func TestOneKeyRefused(t *testing.T) {
	t.Parallel()
	insufficient := fault.New(api.CodeInsufficientCredits, "not enough")
	p := &plan{refuse: func(op *credit.Op) error {
		if string(op.Key.Body) < "2" {
			return insufficient
		}
		return nil
	}}
	inBubble(t, p, 4, func(t *testing.T, s *credit.Service) {
		errs := make([]error, 5)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = move(t.Context(), s, "p", "k", fmt.Sprint(i)) })
			synctest.Wait()
		}
		all.Wait()
		for i, want := range []error{insufficient, insufficient, nil, mismatch, mismatch} {
			if !errors.Is(errs[i], want) {
				t.Errorf("request %d: %v, want %v", i, errs[i], want)
			}
		}
		if len(p.groups) != 3 {
			t.Errorf("groups %v", p.groups)
		}
	})
}

var mismatch = &idempotency.Error{Problem: idempotency.Mismatch}

// One project with ten thousand waiting does not keep another from the next
// group; nor do many projects keep one of them waiting.
func TestFairness(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		var all sync.WaitGroup
		add := func(project, key string) {
			all.Go(func() {
				if _, err := move(context.WithoutCancel(t.Context()), s, project, key, "{}"); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range 10_000 {
			add("busy", fmt.Sprint("busy", i))
		}
		<-time.After(5*commit + commit/2)
		before := p.ran()
		add("quiet", "quiet")
		synctest.Wait()
		<-time.After(2 * commit)
		if next := p.keys(before); !slices.Contains(next, "quiet") {
			t.Error("the quiet project was not in the next group")
		}
		for i := range 100 {
			for n := range 3 {
				add(fmt.Sprint("project", i), fmt.Sprintf("%d of project%d", n, i))
			}
		}
		synctest.Wait()
		before = p.ran()
		all.Wait()
		served := map[string]int{}
		for _, key := range slices.Concat(p.groups[before : before+5]...) {
			var n, project int
			if _, err := fmt.Sscanf(key, "%d of project%d", &n, &project); err == nil {
				served[fmt.Sprint(project)]++
			}
		}
		if len(served) != 100 { // 101 projects, 64 places a group: everybody is served twice in four groups
			t.Errorf("after five groups %d of 100 projects were served", len(served))
		}
	})
}

// A group that fails for the sake of one op fails for that one alone.
func TestMembersAlone(t *testing.T) {
	t.Parallel()
	poison := errors.New("poison")
	for name, failure := range map[string]func(){
		"an error": nil,
		"a panic":  func() { panic("poison") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &plan{fail: func(_ int, g credit.Group) (bool, error) {
				if !slices.ContainsFunc(g.Ops, func(op *credit.Op) bool { return op.Key.Key == "k3" }) {
					return true, nil
				}
				if failure != nil {
					failure()
				}
				return false, poison
			}}
			inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
				var all sync.WaitGroup
				for i := range 6 {
					all.Go(func() {
						_, err := move(t.Context(), s, "p", fmt.Sprint("k", i), "{}")
						if (err != nil) != (i == 3) || fault.CodeOf(err) == api.CodeUnavailable {
							t.Errorf("k%d: %v", i, err)
						}
					})
				}
				all.Wait()
			})
			if len(p.taken) != 5 {
				t.Errorf("%d of 5 keys are taken", len(p.taken))
			}
		})
	}
}

// An unknown COMMIT is asked about again; what is heard in the end is true.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail    func(n int, g credit.Group) (bool, error)
		applied any // nil: success, and not a replay
		taken   int
	}{
		"it has landed": {
			func(n int, _ credit.Group) (bool, error) { return true, map[int]error{0: unknown()}[n] }, nil, 1,
		},
		"it has not landed": {
			func(n int, _ credit.Group) (bool, error) { return n > 0, map[int]error{0: unknown()}[n] }, nil, 1,
		},
		"it stays unknown": {
			func(int, credit.Group) (bool, error) { return false, unknown() }, "unknown", 0,
		},
		"it has landed, and then the database is gone": {
			func(n int, _ credit.Group) (bool, error) {
				if n == 0 {
					return true, unknown()
				}
				return false, unreachable()
			}, "unknown", 1,
		},
		"it has landed, and then something else fails": {
			func(n int, _ credit.Group) (bool, error) {
				if n == 0 {
					return true, unknown()
				}
				return false, errors.New("broken")
			}, "unknown", 1,
		},
		"it was never begun": {
			func(int, credit.Group) (bool, error) { return false, unreachable() }, false, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &plan{fail: test.fail}
			inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
				m, err := move(t.Context(), s, "p", "k", "{}")
				switch {
				case test.applied == nil && (err != nil || m.Replayed || string(m.Answer.Body) != "k"):
					t.Errorf("%+v %v", m, err)
				case test.applied != nil && applied(err) != test.applied:
					t.Errorf("applied %v, want %v: %v", applied(err), test.applied, err)
				}
			})
			if len(p.taken) != test.taken {
				t.Errorf("%d keys are taken", len(p.taken))
			}
		})
	}
}

// A refusal that was decided in a group whose COMMIT has failed is not heard:
// it is decided anew.
func TestRefusalsAreNotHeardBeforeCommit(t *testing.T) {
	t.Parallel()
	decided := 0
	p := &plan{
		fail: func(n int, _ credit.Group) (bool, error) { return n > 0, map[int]error{0: unknown()}[n] },
		refuse: func(*credit.Op) error {
			if decided++; decided == 1 {
				return fault.New(api.CodeInsufficientCredits, "because of a neighbour that was not committed")
			}
			return nil
		},
	}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		if _, err := move(t.Context(), s, "p", "k", "{}"); err != nil {
			t.Error(err)
		}
	})
}

// Who leaves does not know; the work is done, once.
func TestCallersThatLeave(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := move(ctx, s, "p", "k", "{}"); applied(err) != "unknown" {
					t.Errorf("applied %v: %v", applied(err), err)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		m, err := move(t.Context(), s, "p", "k", "{}")
		if err != nil || !m.Replayed {
			t.Errorf("%+v %v", m, err)
		}
	})
	if len(p.groups) != 1 {
		t.Errorf("groups %v", p.groups)
	}
}

// Close does what waits and takes nothing more.
func TestClose(t *testing.T) {
	t.Parallel()
	p := &plan{}
	synctest.Test(t, func(t *testing.T) {
		s := p.service(2)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				if _, err := move(t.Context(), s, "p", fmt.Sprint("k", i%150), "{}"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		s.Close()
		if len(p.taken) != 150 {
			t.Errorf("%d keys are taken", len(p.taken))
		}
		all.Wait()
		if _, err := move(t.Context(), s, "p", "late", "{}"); applied(err) != false {
			t.Error(err)
		}
	})
}

// No more than 20,000 wait; who is refused is told that nothing was done.
func TestBound(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		var all sync.WaitGroup
		for i := range 20_001 { // one is under way
			all.Go(func() {
				if _, err := move(context.WithoutCancel(t.Context()), s, "p", fmt.Sprint("k", i), "{}"); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		_, err := move(t.Context(), s, "q", "late", "{}")
		if f, ok := errors.AsType[*fault.Error](err); !ok || applied(err) != false || f.RetryAfter == 0 {
			t.Errorf("%v", err)
		}
		all.Wait()
		if _, err := move(t.Context(), s, "q", "late", "{}"); err != nil {
			t.Error(err)
		}
	})
}
