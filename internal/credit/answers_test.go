package credit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// A repeat that follows soon is answered from memory, and only with the same
// bytes. Half an hour later, which is half as long as answers are kept, the
// store is asked.
func TestRepeatFromMemory(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		repeat := func(body string, looks int) error {
			m, err := move(t.Context(), s, "p", "k", body)
			if err == nil && (!m.Replayed || string(m.Answer.Body) != "k") {
				t.Errorf("%+v", m)
			}
			if p.looks != looks {
				t.Errorf("%d looks at the key, want %d", p.looks, looks)
			}
			return err
		}
		if _, err := move(t.Context(), s, "p", "k", "{}"); err != nil || p.ran() != 1 || p.looks != 0 {
			t.Fatalf("%v, %d groups, %d looks", err, p.ran(), p.looks)
		}
		if err := repeat("{}", 0); err != nil || p.ran() != 1 {
			t.Errorf("%v, %d groups", err, p.ran())
		}
		if err := repeat("[]", 0); !errors.Is(err, mismatch) || p.ran() != 2 {
			t.Errorf("other bytes: %v, %d groups", err, p.ran())
		}
		if _, err := move(t.Context(), s, "other", "k", "{}"); err != nil || p.ran() != 3 {
			t.Errorf("another project: %v, %d groups", err, p.ran())
		}
		<-time.After(30 * time.Minute)
		if err := repeat("{}", 0); err != nil || p.ran() != 4 {
			t.Errorf("later: %v, %d groups", err, p.ran())
		}
	})
}

// A key that is taken says so whatever else is wrong with a request; the fault
// of one whose key is free is heard, with the word that it is free.
func TestFaultAndKey(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 1, func(t *testing.T, s *credit.Service) {
		broken := fault.New(api.CodeInvalidJSON, "the body is not JSON")
		free := false
		ask := func(key, body string) error {
			free = false
			_, err := s.Move(t.Context(), credit.MoveParams{
				ProjectID: "p", Customer: "ada", Kind: credit.Topup, Key: key, Body: []byte(body),
				Decode: func() (credit.Move, error) { return credit.Move{}, broken }, Free: func() { free = true },
			})
			return err
		}
		if err := ask("k", "{"); !errors.Is(err, broken) || !free {
			t.Errorf("a free key: %v, %v", err, free)
		}
		if _, err := move(t.Context(), s, "p", "k", "{}"); err != nil {
			t.Fatal(err)
		}
		if err := ask("k", "{"); !errors.Is(err, mismatch) || free {
			t.Errorf("a taken key: %v, %v", err, free)
		}
		if p.ran() != 1 {
			t.Errorf("%d groups", p.ran())
		}
	})
}

// While a group is under way, others begin beside it only when they are full.
func TestGroupsBesideOthers(t *testing.T) {
	t.Parallel()
	p := &plan{}
	inBubble(t, p, 4, func(t *testing.T, s *credit.Service) {
		var all sync.WaitGroup
		add := func(from, to int) {
			for i := from; i < to; i++ {
				all.Go(func() {
					if _, err := move(context.Background(), s, "p", fmt.Sprint("k", i), "{}"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		add(0, 1)
		if add(1, 64); p.ran() != 1 {
			t.Errorf("%d groups are under way with 63 ops that wait", p.ran())
		}
		if add(64, 70); p.ran() != 2 {
			t.Errorf("%d groups are under way with 69 ops that wait", p.ran())
		}
		all.Wait()
		if p.ran() != 3 {
			t.Errorf("%d groups, want 3", p.ran())
		}
	})
}
