package quota

import (
	"sync"
)

// Usage is what was added in a month.
type Usage struct {
	Events int64
	// Bytes are those of the accepted items as they are encoded.
	Bytes int64
}

// Addition is what one request adds.
type Addition struct {
	Organization string
	// Plan is the organization's own plan; empty is the default one.
	Plan    string
	Project uint32
	// At is when it was received, in milliseconds since 1970.
	At int64
	// Events may be 0: such a request is never refused.
	Events int64
	Bytes  int64
}

// Meter counts what organizations add, and refuses what is over their plans. It
// is safe for concurrent use, but which of two additions gets the last of a
// quota is decided by the order in which they come.
//
// It holds every month from the one on that it was made for. What was added
// before the process began is to be told by Count.
type Meter struct {
	plans Plans
	first Month

	mu       sync.Mutex
	projects map[projectMonth]*projectTally
	totals   map[organizationMonth]*total
	// month is that of the last addition: times from begin to before end.
	month      Month
	begin, end int64
}

type projectMonth struct {
	project uint32
	month   Month
}

type organizationMonth struct {
	organization string
	month        Month
}

// total is what an organization has added in a month.
type total struct {
	Usage

	replays replayTally
}

type projectTally struct {
	Usage

	total *total
}

// NewMeter returns a meter that holds the months from first on, all empty.
func NewMeter(plans Plans, first Month) *Meter {
	return &Meter{
		plans: plans, first: first,
		projects: map[projectMonth]*projectTally{}, totals: map[organizationMonth]*total{},
	}
}

// Count counts what was added before this process began. It refuses nothing.
func (m *Meter) Count(a Addition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.find(a).add(a.Events, a.Bytes)
}

// Admit counts an addition. If the organization has nothing left this month of
// something that its plan limits, it counts nothing and returns the fault
// quota_exceeded, on a trial plan trial_quota_exceeded. As long as anything is
// left, an addition is admitted whole.
func (m *Meter) Admit(a Addition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	tally := m.find(a)
	if a.Events > 0 {
		if err := m.plans.Of(a.Plan).judge(tally.total, m.month); err != nil {
			return err
		}
	}
	tally.add(a.Events, a.Bytes)
	return nil
}

// Return takes back an addition that was admitted and then not made.
func (m *Meter) Return(a Addition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.find(a).add(-a.Events, -a.Bytes)
}

// Usage returns what projects have added in a month, in their order, and
// whether the meter holds that month.
func (m *Meter) Usage(month Month, projects []uint32) ([]Usage, bool) {
	if month < m.first {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Usage, len(projects))
	for i, p := range projects {
		if tally := m.projects[projectMonth{p, month}]; tally != nil {
			all[i] = tally.Usage
		}
	}
	return all, true
}

// find returns the tally of an addition's project in the month of the
// addition, which it makes the meter's month.
func (m *Meter) find(a Addition) *projectTally {
	if a.At < m.begin || a.At >= m.end {
		m.month = MonthAt(a.At)
		m.begin, m.end = m.month.Begin().UnixMilli(), m.month.End().UnixMilli()
	}
	key := projectMonth{a.Project, m.month}
	tally := m.projects[key]
	if tally == nil {
		tally = &projectTally{total: m.totalOf(a.Organization, m.month)}
		m.projects[key] = tally
	}
	return tally
}

func (m *Meter) totalOf(organization string, month Month) *total {
	key := organizationMonth{organization, month}
	found := m.totals[key]
	if found == nil {
		found = &total{}
		m.totals[key] = found
	}
	return found
}

func (t *projectTally) add(events, bytes int64) {
	t.Events += events
	t.Bytes += bytes
	t.total.Events += events
	t.total.Bytes += bytes
}
