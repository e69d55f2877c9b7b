package judgeserver

import (
	"context"
	"sync"

	"github.com/actionpulse/actionpulse/internal/lab/report"
)

const (
	// senders are how many requests are under way when the server is restarted,
	// each of them one of eachSends.
	senders   = 8
	eachSends = 6
	// answersBefore is how many answers come before that.
	answersBefore = 8
)

// restart sees that keys outlive the process: of work whose answer arrived, and
// of work whose answer was lost.
func (j *judge) restart(ctx context.Context) finding {
	if j.options.Restart == nil {
		return notTested("the lab was not told how to restart the server")
	}
	return j.within(ctx, func(u unit) finding {
		first := j.send(ctx, u)
		if err := j.options.Restart(ctx); err != nil {
			return inconclusive("the restart failed: %v", err)
		}
		again := j.settle(ctx, j.request(u))
		return succeeds(u, "the first request", first).and(succeeds(u, "its repeat after the restart", again), j.one(ctx, u, first, again))
	})
}

// underWay is a unit of work and what came of its request; nil if it was not
// sent.
type underWay struct {
	unit   unit
	before *answer
}

// restartUnderLoad restarts the server while it has work under way, each unit
// with its own key, and repeats all that was sent.
func (j *judge) restartUnderLoad(ctx context.Context) finding {
	if j.options.Restart == nil {
		return notTested("the lab was not told how to restart the server")
	}
	work := make([]underWay, senders*eachSends)
	for i := range work {
		u, err := j.unit(ctx)
		if err != nil {
			return inconclusive("%v", err)
		}
		work[i].unit = u
	}
	if err := j.load(ctx, work); err != nil {
		return inconclusive("the restart failed: %v", err)
	}
	return j.repeatAll(ctx, work)
}

// load sends the work and restarts the server when some of it has been
// answered. A sender stops when it gets no answer.
func (j *judge) load(ctx context.Context, work []underWay) error {
	answered := make(chan struct{}, len(work))
	var all sync.WaitGroup
	for n := range senders {
		all.Go(func() {
			for i := n * eachSends; i < (n+1)*eachSends; i++ {
				a := j.send(ctx, work[i].unit)
				work[i].before = &a
				answered <- struct{}{}
				if a.err != nil {
					return
				}
			}
		})
	}
	for range answersBefore {
		<-answered
	}
	err := j.options.Restart(ctx)
	all.Wait()
	return err
}

func (j *judge) repeatAll(ctx context.Context, work []underWay) finding {
	var sent []answer
	f, cut := finding{verdict: report.Pass}, 0
	for _, w := range work {
		if w.before == nil {
			continue
		}
		sent = append(sent, *w.before)
		repeat := j.settle(ctx, j.request(w.unit))
		seen := []answer{repeat}
		if w.before.succeeded() {
			seen = append(seen, *w.before)
		} else {
			cut++
		}
		one := succeeds(w.unit, "the repeat", repeat).and(j.one(ctx, w.unit, seen...))
		if one.verdict != report.Pass {
			f = f.and(one)
		}
	}
	if cut == 0 && f.verdict == report.Pass {
		return notTested("the restart cut nothing off: %s", statuses(sent))
	}
	return pass("%d requests around the restart: %s", len(sent), statuses(sent)).and(f)
}
