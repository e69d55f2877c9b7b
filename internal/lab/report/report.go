// Package report owns what the lab says about a client or a server under
// test: a list of checks, each with the rule it comes from, its verdict and
// the evidence for it, and the forms in which that is printed.
//
// A verdict is never better than what was seen: a rule that the run gave no
// occasion to break is [NotTested], and one whose evidence allows two readings
// is [Inconclusive]; neither is a pass. The package judges nothing itself.
package report

import "time"

// Verdict is what a check found.
type Verdict string

// The verdicts.
const (
	// Pass: there was an occasion to break the rule, and it was kept.
	Pass Verdict = "pass"
	// Fail: the rule was broken; the evidence says where.
	Fail Verdict = "fail"
	// Inconclusive: there was an occasion, but what was seen allows both
	// readings.
	Inconclusive Verdict = "inconclusive"
	// NotTested: there was no occasion; the evidence says why.
	NotTested Verdict = "not_tested"
)

// Check is one rule and what became of it.
type Check struct {
	// ID names the check for good, in kebab-case: id-stable-across-attempts.
	ID string `json:"id"`
	// Title is the rule in one sentence.
	Title string `json:"title"`
	// Source says where the rule is promised or demanded.
	Source  string  `json:"source"`
	Verdict Verdict `json:"verdict"`
	// Evidence is what was seen, one sentence or line of record each; for
	// Inconclusive and NotTested it is the reason. It holds no secrets.
	Evidence []string `json:"evidence"`
}

// Report is the result of one run.
type Report struct {
	// Tool is the command that judged: "lab client".
	Tool string `json:"tool"`
	// Subject is who was judged: a command line or an address.
	Subject string `json:"subject"`
	// Seed makes the same run again.
	Seed uint64 `json:"seed"`
	// Settings are what else the run depended on, in the order to be shown.
	Settings []Setting `json:"settings"`
	// Started is when the run began; Took how long it was, written as
	// nanoseconds in JSON.
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
	Checks  []Check       `json:"checks"`
}

// Setting is something that a run depended on.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Counts are how many checks had each verdict.
type Counts struct {
	Pass         int `json:"pass"`
	Fail         int `json:"fail"`
	Inconclusive int `json:"inconclusive"`
	NotTested    int `json:"not_tested"`
}

// Counts counts the verdicts. A verdict that is none of the four counts as
// Fail.
func (r *Report) Counts() Counts {
	var c Counts
	for _, check := range r.Checks {
		switch check.Verdict {
		case Pass:
			c.Pass++
		case Inconclusive:
			c.Inconclusive++
		case NotTested:
			c.NotTested++
		default:
			c.Fail++
		}
	}
	return c
}

// Failed reports whether at least one rule was broken.
func (r *Report) Failed() bool { return r.Counts().Fail > 0 }

// Find returns the check with an id, or nil.
func (r *Report) Find(id string) *Check {
	for i := range r.Checks {
		if r.Checks[i].ID == id {
			return &r.Checks[i]
		}
	}
	return nil
}
