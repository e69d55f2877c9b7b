package executionstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// How long a client waits is its own business; what it hears is how things are
// then.
func TestWait(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		goOn := make(chan struct{})
		slug := b.next(t, "steps: [{id: a, type: http}]\n", held(goOn))
		s := b.serve(t, 1)
		none, short := time.Duration(0), 50*time.Millisecond
		// The one place may be taken for a moment by the start's look at the queue.
		first, err := s.execute(t, b, order{key: "k", flow: slug, wait: &none})
		if err != nil || first.Replayed || first.Execution.Status.Ended() {
			t.Errorf("%+v %v", first, err)
		}
		<-b.callee.called
		repeat, err := s.execute(t, b, order{key: "k", flow: slug, wait: &short})
		if err != nil || !repeat.Replayed || repeat.Execution.Status != execution.Running {
			t.Errorf("%+v %v", repeat, err)
		}
		async, err := s.execute(t, b, order{key: "async", flow: slug, mode: execution.Async})
		if err != nil || async.Execution.Status != execution.Queued {
			t.Errorf("%+v %v", async, err)
		}
		again, err := s.execute(t, b, order{key: "async", flow: slug, mode: execution.Async})
		if err != nil || again.Execution.Status != execution.Queued || !again.Replayed {
			t.Errorf("%+v %v", again, err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				long := time.Hour
				done, err := s.execute(t, b, order{key: "k", flow: slug, wait: &long})
				if err != nil || done.Execution.Status != execution.Succeeded || !done.Replayed {
					t.Errorf("%+v %v", done, err)
				}
			})
		}
		close(goOn)
		all.Wait()
		s.ended(t, b, async.Execution.ID)
		if n := b.callee.total(); n != 2 {
			t.Errorf("%d calls", n)
		}
	})
}

// Those who follow hear of the end once and last, however slow they are, and on
// whatever server they are.
func TestFollow(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		goOn := make(chan struct{})
		slug := b.next(t, "steps: [{id: a, type: http}, {id: b, type: http}]\n", func(_ context.Context, r *step.Run, _ string) (step.Result, error) {
			<-goOn
			for i := range 2000 {
				r.Emit(fmt.Sprint(i))
			}
			return step.Result{Value: map[string]any{}}, nil
		})
		s, other := b.serve(t, 1), b.serve(t, 0)
		x := s.must(t, b, order{key: "k", flow: slug, mode: execution.Async})
		<-b.callee.called
		var all sync.WaitGroup
		gone := errors.New("gone")
		if err := s.Follow(t.Context(), b.project, x.ID, func(execution.Event) error { return gone }); !errors.Is(err, gone) {
			t.Error(err)
		}
		begun := make(chan struct{}, 3)
		for i, at := range []*server{s, s, other} {
			all.Go(func() {
				ends, after, slow := 0, 0, i == 1
				err := at.Follow(t.Context(), b.project, x.ID, func(e execution.Event) error {
					select {
					case begun <- struct{}{}:
					default:
					}
					if slow {
						slow = false
						<-goOn
						other.ended(t, b, x.ID) // without it
					}
					if ends > 0 {
						after++
					}
					if e.Execution != nil && e.Execution.Status.Ended() {
						ends++
					}
					return nil
				})
				if err != nil || ends != 1 || after != 0 {
					t.Errorf("%d heard of %d ends, and %d more: %v", i, ends, after, err)
				}
			})
		}
		for range 3 {
			<-begun
		}
		close(goOn)
		all.Wait()
		if x := s.ended(t, b, x.ID); x.Status != execution.Succeeded {
			t.Errorf("%+v", x)
		}
	})
}
