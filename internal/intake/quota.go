package intake

import (
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/record"
)

// Quota decides what organizations may add. The sequencer alone calls it, in
// the order of its decisions, so whoever comes first gets what is left. It must
// be quick.
type Quota interface {
	// Admit counts an addition, or counts nothing and returns why it is
	// refused.
	Admit(a quota.Addition) error
	// Return takes back what was admitted and then not written.
	Return(a quota.Addition)
}

// charge is what a request's new items are counted to.
type charge struct {
	quota.Addition

	// counts says that they count at all, admitted that they were counted.
	counts, admitted bool
}

func (s *Source) charge() charge {
	return charge{Addition: quota.Addition{Organization: s.Organization, Plan: s.Plan, Project: s.Project}, counts: true}
}

// admit has the new items of a request counted. If they are refused, the
// request leaves no claim: a neighbour with the same id is judged by itself.
func (q *sequencer) admit(s *submission, fresh []intakestore.Item) error {
	c := &s.charge
	if q.quota == nil || !c.counts {
		return nil
	}
	c.At, c.Events = s.received, int64(len(fresh))
	for i := range fresh {
		c.Bytes += int64(len(fresh[i].Encoded))
	}
	err := q.quota.Admit(c.Addition)
	if c.admitted = err == nil; !c.admitted {
		q.undo(s)
	}
	return err
}

// undo takes back the claims of a request.
func (q *sequencer) undo(s *submission) {
	for i := range s.items {
		if it := &s.items[i]; it.Claimed && s.verdicts[i] == dedup.New {
			q.decider.Undo(record.Identity{Project: s.header.Project, KeyKind: s.header.KeyKind, EventID: it.EventID})
		}
	}
}

// giveBack takes back what was counted for a group of which nothing is
// written.
func (q *sequencer) giveBack(g *group) {
	for _, s := range g.subs {
		if s.charge.admitted {
			s.charge.admitted = false
			q.quota.Return(s.charge.Addition)
		}
	}
}
