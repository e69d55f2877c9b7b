package query

// never is a start that no step can have had.
const never = -1 << 63

// FunnelWalk decides how far each person got through a funnel from the rows of
// its steps, which must be added in order of person, then time.
//
// For every row of a step it knows the latest start from which that step can
// be reached there: the latest start of the step before at a strictly earlier
// time. A later start is never worse, so a person reached a step if at one of
// its rows the latest start is no further back than the window. This is what
// trying every start would find.
type FunnelWalk struct {
	window  int64
	persons []int64

	who     int64
	started bool
	ts      int64
	reached int
	// best is the latest start of each step at times before ts; next has the
	// rows at ts too.
	best, next []int64
}

// NewFunnelWalk returns a walk through a number of steps, at most 32; window
// is in milliseconds.
func NewFunnelWalk(steps int, window int64) *FunnelWalk {
	return &FunnelWalk{
		window:  window,
		persons: make([]int64, steps),
		best:    make([]int64, steps),
		next:    make([]int64, steps),
	}
}

// Add takes the next row: whose it is, when it was and a bit for each step it
// is a row of, the first step's lowest.
func (w *FunnelWalk) Add(who, ts int64, steps uint32) {
	if !w.started || who != w.who {
		w.finish()
		w.started, w.who, w.ts = true, who, ts
	}
	if ts != w.ts {
		copy(w.best, w.next)
		w.ts = ts
	}
	for i := range w.next {
		if steps&(1<<i) == 0 {
			continue
		}
		start := ts
		if i > 0 {
			start = w.best[i-1]
		}
		if start == never {
			continue
		}
		w.next[i] = max(w.next[i], start)
		if ts-start <= w.window {
			w.reached = max(w.reached, i+1)
		}
	}
}

// finish counts the present person and forgets everything about them.
func (w *FunnelWalk) finish() {
	for i := range w.reached {
		w.persons[i]++
	}
	w.reached = 0
	for i := range w.best {
		w.best[i], w.next[i] = never, never
	}
}

// Persons ends the walk and returns how many persons reached each step.
func (w *FunnelWalk) Persons() []int64 {
	w.finish()
	w.started = false
	return w.persons
}
