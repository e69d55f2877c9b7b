package judgeclient

import (
	"slices"
	"time"
)

// delayChecks are about when something is sent again, and how often.
func delayChecks() []Check {
	return []Check{
		{
			ID: "retry-after-obeyed", Title: "Retry-After is obeyed exactly", Profiles: []Profile{Events, Keyed, Mutation, Deploy, Replay},
			Source: "delays: if Retry-After came, wait exactly so long",
			How:    "seconds and a date are asked for; the next attempt may come 15 ms before the time for clocks that differ, and at most 300 ms and a tenth of the wait after it",
			judge:  retryAfter,
		},
		{
			ID: "delays-first", Title: "The first delay is about a second", Profiles: repeating,
			Source: "delays: the first pause is about a second, then it doubles up to 30 s",
			How:    "the median of the first delays must be between half and twice the unit of --scale, and 30 ms for the way",
			judge:  firstDelay,
		},
		{
			ID: "delays-grow", Title: "Delays grow", Profiles: repeating,
			Source: "delays: the pause doubles up to 30 s",
			How:    "the fourth delay (or third, if there are no more) must be at least twice the first; doubling and a jitter of a quarter make at least 2.4 times",
			judge:  growing,
		},
		{
			ID: "delays-jittered", Title: "Delays have a random part", Profiles: repeating,
			Source: "delays: without a random part all processes knock in the same second",
			How:    "the same outage is played several times; delays at the same place are compared, less 5 ms for the way. If they differ from their median by 2 % or less on average, there is no jitter; 4 % show it, and a quarter makes some 12 %",
			judge:  jittered,
		},
		{
			ID: "attempts-bounded", Title: "The number of attempts is bounded", Profiles: repeating,
			Source: "delays: bound the number of attempts",
			How:    "the server fails for ever; the client must end by itself, after no more attempts than --max-attempts",
			judge:  attemptsBounded,
		},
	}
}

const (
	// early is how much before its time an attempt may come.
	early = 15 * time.Millisecond
	// late is how much after its time it may come, beside a tenth of the wait.
	late = 300 * time.Millisecond
)

func retryAfter(f *findings) {
	for _, r := range f.records {
		for _, request := range r.Requests {
			again := r.next(request)
			if request.Due == 0 || again == nil || len(request.Items) == 0 {
				continue
			}
			off := again.Arrived - request.Due
			asked, waited := seconds(request.Due-request.Ended), seconds(again.Arrived-request.Ended)
			switch {
			case off < -early:
				f.broken(r, "%v asked for %s, and request %d came after %s", request, asked, again.N, waited)
			case off > late+(request.Due-request.Ended)/10:
				f.broken(r, "%v asked for %s, and request %d came only after %s", request, asked, again.N, waited)
			default:
				f.kept("scenario %s: asked for %s, waited %s", r.Scenario.Name, asked, waited)
			}
		}
	}
	f.none("nothing came again after an answer with Retry-After")
}

// gap is one of the client's own delays.
type gap struct {
	// place counts the failures before it, from 1.
	place int
	wait  time.Duration
}

// sequences are the client's own delays, one list for each time that it met a
// series of failures in a scenario where nothing else disturbs them. Only the
// first series of a run counts: a client may go on where it was when the next
// unit of work meets the same outage.
func (f *findings) sequences() (of []*Record, out [][]gap) {
	for _, r := range f.records {
		if !r.Scenario.timed {
			continue
		}
		begun := map[int]bool{}
		for _, request := range r.Requests {
			if len(request.Items) == 0 || begun[request.Run] {
				continue
			}
			begun[request.Run] = true
			var gaps []gap
			for now := request; now != nil; now = r.next(now) {
				again := r.next(now)
				if again == nil || !now.failed() || now.Due > 0 {
					break
				}
				gaps = append(gaps, gap{len(gaps) + 1, again.Arrived - r.lastFailure(again)})
			}
			if len(gaps) > 0 {
				of, out = append(of, r), append(out, gaps)
			}
		}
	}
	return of, out
}

// lastFailure is when the client last heard of a failure before a request.
func (r *Record) lastFailure(request *Request) time.Duration {
	var last time.Duration
	for _, earlier := range r.Requests {
		if earlier.N < request.N && earlier.Run == request.Run && earlier.failed() && earlier.Ended <= request.Arrived {
			last = max(last, earlier.Ended)
		}
	}
	return last
}

// noise is how much the way and a busy machine may add to a delay.
const noise = 30 * time.Millisecond

func firstDelay(f *findings) {
	var first []time.Duration
	of, sequences := f.sequences()
	for _, gaps := range sequences {
		first = append(first, gaps[0].wait)
	}
	if len(first) == 0 {
		f.none("nothing came again without a Retry-After")
		return
	}
	slices.Sort(first)
	unit, median := f.params.scaled(time.Second), first[len(first)/2]
	if median < unit/2 || median > 2*unit+noise {
		f.broken(of[0], "the median of %d first delays is %s, the unit %s", len(first), seconds(median), seconds(unit))
		return
	}
	f.kept("the median of %d first delays is %s, the unit %s", len(first), seconds(median), seconds(unit))
}

// The ratios of a later delay to the first that show growth, or the want of it.
const (
	grown    = 2.0
	notGrown = 1.7
)

func growing(f *findings) {
	of, sequences := f.sequences()
	for i, gaps := range sequences {
		if len(gaps) < 3 {
			f.none("no series of failures was repeated three times")
			continue
		}
		last := gaps[min(len(gaps), 4)-1]
		ratio := float64(last.wait) / float64(max(gaps[0].wait, time.Microsecond))
		switch {
		case ratio >= grown:
			f.kept("scenario %s: delays %s", of[i].Scenario.Name, waits(gaps))
		case ratio <= notGrown:
			f.broken(of[i], "delays %s", waits(gaps))
		default:
			f.unclear("scenario %s: delays %s", of[i].Scenario.Name, waits(gaps))
		}
	}
	f.none("nothing came again without a Retry-After")
}

// waits writes delays as evidence.
func waits(gaps []gap) string {
	const most = 6
	text := ""
	for i, g := range gaps {
		if i == most {
			return text + ", …"
		}
		if i > 0 {
			text += ", "
		}
		text += seconds(g.wait)
	}
	return text
}

// Of delays at the same place, onTheWay is how much of a difference is due to
// the way, and random and notRandom are the shares by which they differ on
// average that show jitter, or the want of it. A busy machine alone makes some
// 1 %.
const (
	onTheWay  = 5 * time.Millisecond
	random    = 0.04
	notRandom = 0.02
)

// jittered compares delays at the same place of several series.
func jittered(f *findings) {
	of, sequences := f.sequences()
	at := map[int][]time.Duration{}
	for _, gaps := range sequences {
		for _, g := range gaps {
			at[g.place] = append(at[g.place], g.wait)
		}
	}
	compared, apart := 0, 0.0
	for _, waits := range at {
		slices.Sort(waits)
		median := waits[len(waits)/2]
		for _, wait := range waits {
			apart += float64(max(0, (wait-median).Abs()-onTheWay)) / float64(max(median, time.Microsecond))
		}
		// One of them is the median itself.
		compared += len(waits) - 1
	}
	const enough = 4
	if compared < enough {
		f.none("only %d delays can be compared with another at the same place; %d are needed", compared, enough)
		return
	}
	switch share := apart / float64(compared); {
	case share <= notRandom:
		f.broken(of[0], "%d delays differ by %.1f %% on average from others at the same place; the first series was %s", compared, share*100, waits(sequences[0]))
	case share >= random:
		f.kept("%d delays differ by %.1f %% on average from others at the same place", compared, share*100)
	default:
		f.unclear("%d delays differ by %.1f %% on average from others at the same place", compared, share*100)
	}
}

func attemptsBounded(f *findings) {
	for _, r := range f.records {
		if r.Scenario.Name != "give-up" {
			continue
		}
		n, first, last := r.most(1)
		exit := r.exit(1)
		switch {
		case n > f.params.MaxAttempts:
			f.broken(r, "%d attempts within %s, and no end", n, seconds(last-first))
		case n < 2:
			f.none("nothing was repeated, so there is nothing to bound")
		case exit.TimedOut || exit.Killed:
			f.unclear("%d attempts within %s, and the client was still at it when its time was over", n, seconds(last-first))
		default:
			f.kept("it gave up after %d attempts within %s", n, seconds(last-first))
		}
	}
	f.none("the scenario give-up was not played")
}

// most is how often the fact that came most often in a run was sent, and when
// it was sent first and last.
func (r *Record) most(run int) (n int, first, last time.Duration) {
	_, by := r.attempts()
	for _, attempts := range by {
		of := slices.DeleteFunc(attempts, func(a attempt) bool { return a.request.Run != run })
		if len(of) > n {
			n, first, last = len(of), of[0].request.Arrived, of[len(of)-1].request.Arrived
		}
	}
	return n, first, last
}
