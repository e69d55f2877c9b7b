package alert

import (
	"sync"
	"time"
)

// Traffic is what intake has judged: accepted includes duplicates, duplicates
// include conflicting.
type Traffic struct{ Accepted, Duplicates, Conflicting, Rejected int64 }

func (t *Traffic) add(o Traffic) {
	t.Accepted += o.Accepted
	t.Duplicates += o.Duplicates
	t.Conflicting += o.Conflicting
	t.Rejected += o.Rejected
}

const (
	// Minutes are kept for longer than 24 periods of five minutes, quarters of
	// an hour for longer than the last two days, which all longer periods are
	// made of, whatever the time zone.
	minuteSlots  = 240
	quarterSlots = 240
	quarter      = 15 * time.Minute
	// maxTracked is how many projects are counted; past it the one that was
	// quiet for longest is forgotten.
	maxTracked = 1000
)

// Health counts what this process takes in, by project and time, and how long
// records wait for the event store. It lives in memory: at most some 40 KB
// a project that sends, and it starts empty with the process. It is safe for concurrent
// use.
type Health struct {
	mu       sync.Mutex
	projects map[uint32]*traffic
	// lag is the longest wait, in seconds, by minute and quarter of an hour.
	lag series[float64]
}

// NewHealth returns counters that stand at zero.
func NewHealth() *Health {
	return &Health{projects: map[uint32]*traffic{}, lag: newSeries(func(to *float64, v float64) { *to = max(*to, v) })}
}

type traffic struct {
	series[Traffic]

	latest time.Time
}

// Count notes the verdicts of one request.
func (h *Health) Count(project uint32, at time.Time, t Traffic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.projects[project]
	if p == nil {
		if len(h.projects) >= maxTracked {
			h.forget()
		}
		p = &traffic{series: newSeries((*Traffic).add)}
		h.projects[project] = p
	}
	p.latest = at
	p.note(at, t)
}

// forget makes room for one more project.
func (h *Health) forget() {
	var quietest uint32
	var since time.Time
	for number, p := range h.projects {
		if since.IsZero() || p.latest.Before(since) {
			quietest, since = number, p.latest
		}
	}
	delete(h.projects, quietest)
}

// Lag notes how long the oldest waiting record has waited.
func (h *Health) Lag(at time.Time, waited time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lag.note(at, waited.Seconds())
}

// Sample is the health of intake in a period, as far as this process knows it.
// Periods begin and end at multiples of five minutes.
func (h *Health) Sample(k Kind, project uint32, p Period) Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k == LagSeconds {
		value, known := h.lag.over(p)
		return Sample{Value: value, Known: known}
	}
	counted := h.projects[project]
	if counted == nil {
		return Sample{}
	}
	sum, known := counted.over(p)
	part, whole := sum.Duplicates, sum.Accepted
	if k == RejectionRate {
		part, whole = sum.Rejected, sum.Accepted+sum.Rejected
	}
	if !known || whole == 0 {
		return Sample{}
	}
	return Sample{Value: float64(part) / float64(whole), Volume: float64(whole), Known: true}
}

// series is one number after the other, in slots of a minute and of a quarter
// of an hour.
type series[T any] struct {
	minutes, quarters ring[T]
}

func newSeries[T any](add func(*T, T)) series[T] {
	return series[T]{newRing(time.Minute, minuteSlots, add), newRing(quarter, quarterSlots, add)}
}

func (s *series[T]) note(at time.Time, v T) {
	s.minutes.note(at, v)
	s.quarters.note(at, v)
}

// over adds up what was noted in a period, and says whether anything was.
func (s *series[T]) over(p Period) (T, bool) {
	if p.Start.Equal(p.Start.Truncate(quarter)) && p.End.Equal(p.End.Truncate(quarter)) {
		return s.quarters.over(p)
	}
	return s.minutes.over(p)
}

// ring holds the latest slots of one length. It grows with what is noted.
type ring[T any] struct {
	length time.Duration
	add    func(*T, T)
	most   int
	slots  map[int64]T // by their number since 1970
}

func newRing[T any](length time.Duration, most int, add func(*T, T)) ring[T] {
	return ring[T]{length: length, most: most, add: add, slots: map[int64]T{}}
}

func (r *ring[T]) number(t time.Time) int64 { return t.UnixNano() / int64(r.length) }

func (r *ring[T]) note(at time.Time, v T) {
	n := r.number(at)
	sum, met := r.slots[n]
	if !met && len(r.slots) >= r.most {
		r.drop()
	}
	r.add(&sum, v)
	r.slots[n] = sum
}

// drop forgets the oldest slot.
func (r *ring[T]) drop() {
	oldest, first := int64(0), true
	for n := range r.slots {
		if first || n < oldest {
			oldest, first = n, false
		}
	}
	delete(r.slots, oldest)
}

func (r *ring[T]) over(p Period) (sum T, known bool) {
	for n := r.number(p.Start); n < r.number(p.End); n++ {
		if v, ok := r.slots[n]; ok {
			r.add(&sum, v)
			known = true
		}
	}
	return sum, known
}
