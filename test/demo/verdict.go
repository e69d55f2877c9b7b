package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/actionpulse/actionpulse/internal/credit"
)

// verdict compares what there is with what there should be.
type verdict struct {
	shop   *shop
	found  *found
	counts [kinds]counted
	// killed is how often the server was killed, verified what its own check of
	// the folder has found.
	killed   int
	verified error
}

// line is what became of one kind.
type line struct {
	name string
	// sent is how many were handed to the clients, once for each pass; stored
	// how many there are.
	sent, stored, expected int64
	counted
	// moved credits; money says whether any are.
	moved, expectedMoved credit.Amount
	money                bool
}

// lines are all kinds.
func (v *verdict) lines() [kinds]line {
	var total int64
	for _, n := range v.found.names {
		total += n
	}
	customers, orders, mails := int64(len(v.shop.customers)), int64(v.shop.orders), int64(v.shop.mails)
	var paid credit.Amount
	for i := range v.shop.customers {
		for _, o := range v.shop.customers[i].orders {
			paid += o.amount
		}
	}
	out := [kinds]line{
		events:  {name: "events", stored: total, expected: int64(len(v.shop.events))},
		topUps:  {name: "top-ups", stored: v.found.count[topUps], expected: customers, expectedMoved: credit.Amount(customers) * welcome, money: true},
		charges: {name: "charges", stored: v.found.count[charges], expected: orders, expectedMoved: -paid, money: true},
		runs:    {name: "flow runs", stored: v.found.runs, expected: mails, expectedMoved: -credit.Amount(mails) * perMail, money: true},
	}
	for k := range out {
		out[k].sent, out[k].counted, out[k].moved = passes*out[k].expected, v.counts[k], v.found.moved[k]
	}
	return out
}

// faults are what is wrong; none is what the demo is to show.
func (v *verdict) faults() (out []error) {
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, fmt.Errorf(format, args...))
		}
	}
	for _, l := range v.lines() {
		fault(l.stored != l.expected, "%s: %d are stored, expected %d", l.name, l.stored, l.expected)
		fault(l.moved != l.expectedMoved, "%s: %s credits were moved, expected %s", l.name, l.moved, l.expectedMoved)
		fault(l.refused != 0, "%s: %d were refused", l.name, l.refused)
		fault(l.attempts < l.sent, "%s: %d attempts for %d", l.name, l.attempts, l.sent)
		fault(l.suppressed < l.sent-l.expected, "%s: %d repeats were recognised, at least %d were sent", l.name, l.suppressed, l.sent-l.expected)
	}
	for _, name := range slices.Sorted(maps.Keys(v.shop.names)) {
		fault(v.found.names[name] != v.shop.names[name], "events named %s: %d are stored, expected %d", name, v.found.names[name], v.shop.names[name])
	}
	fault(len(v.found.names) != len(v.shop.names), "there are %d names of events, expected %d", len(v.found.names), len(v.shop.names))
	fault(v.found.succeeded != v.found.runs, "%d of %d flow runs succeeded", v.found.succeeded, v.found.runs)
	fault(v.found.count[runs] != v.found.runs, "%d flow runs were paid %d times", v.found.runs, v.found.count[runs])
	fault(v.found.right != len(v.shop.customers), "%d of %d customers have the right balance", v.found.right, len(v.shop.customers))
	fault(v.killed != len(demo{}.kills), "the server was killed %d times", v.killed)
	if v.verified != nil {
		out = append(out, errors.Join(errors.New("the folder is not whole"), v.verified))
	}
	return out
}
