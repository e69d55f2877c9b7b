// Package cienv owns what a step of a CI/CD pipeline can know about the deploy
// that it belongs to, from its environment variables alone: a key that names the
// deploy, and what describes it.
//
// Invariants:
//   - what is found is the same on every attempt of a step: neither the key nor
//     anything else is taken from a variable that a retry changes, such as the
//     number of the attempt, the id of the job or the time at which it started;
//   - the next run has another key, and so has another environment of one run;
//   - different texts never make one key: whatever is not allowed in a key, or
//     separates its parts, is escaped.
//
// It never reads the environment itself, nor files, nor the clock, and it knows
// no secrets.
package cienv

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Lookup returns the value of an environment variable and whether there is one,
// as os.LookupEnv does.
type Lookup func(name string) (string, bool)

// Value is something that was found, and where.
type Value struct {
	// Text is empty if the system does not say.
	Text string
	// From names the variables that it was made from.
	From []string
}

// Run is one run of a pipeline, and the step of it that is running.
type Run struct {
	// System is the CI/CD system, in its own spelling.
	System string
	// Environment is where the step deploys to.
	Environment Value
	// Commit is the full hash of what is deployed.
	Commit Value
	// URL is the address of the run, not of an attempt.
	URL Value
	// TS is when the run was made: a time of RFC 3339 in UTC.
	TS Value
	// Missing names the variables without which there is no key, each with its
	// alternatives.
	Missing []string

	prefix string
	// run names the run, step the step within it.
	run, step []Value
}

// Find returns the run that the variables speak of, and whether they are those
// of a system that is known.
func Find(lookup Lookup) (Run, bool) {
	v := variables{lookup}
	for i := range systems {
		if s := &systems[i]; s.detected(v) {
			return s.read(v), true
		}
	}
	return Run{}, false
}

// Systems are the names of the systems that are known, in the order in which
// they are looked for.
func Systems() []string {
	names := make([]string, len(systems))
	for i := range systems {
		names[i] = systems[i].name
	}
	return names
}

// Key names the deploy to an environment as an Idempotency-Key of 8 to 128
// visible ASCII characters without commas. A run that makes several deploys to
// one environment tells them apart by name; without one, the step is the name.
// The error says which variables are missing.
func (r *Run) Key(environment, name string) (Value, error) {
	if len(r.Missing) > 0 {
		return Value{}, fmt.Errorf("%s, but %s is not set", r.System, strings.Join(r.Missing, ", "))
	}
	parts, from := []string{r.prefix}, []string(nil)
	add := func(values []Value) {
		for _, v := range values {
			parts, from = append(parts, v.Text), append(from, v.From...)
		}
	}
	add(r.run)
	if name == "" {
		add(r.step)
	} else {
		parts = append(parts, name)
	}
	return Value{Text: joined(append(parts, environment)), From: from}, nil
}

// variables reads variables; one that is blank is not set.
type variables struct{ lookup Lookup }

func (v variables) get(name string) string {
	text, _ := v.lookup(name)
	return strings.TrimSpace(text)
}

// first is the first of the variables that is set.
func (v variables) first(names []string) Value {
	for _, name := range names {
		if text := v.get(name); text != "" {
			return Value{text, []string{name}}
		}
	}
	return Value{}
}

// timeOf reads a time in one of the forms that systems use. What is no time is
// none.
func timeOf(text string, form timeForm) string {
	var at time.Time
	switch form {
	case rfc3339:
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return ""
		}
		at = parsed
	case unixSeconds, unixMilliseconds:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return ""
		}
		at = time.Unix(n, 0)
		if form == unixMilliseconds {
			at = time.UnixMilli(n)
		}
	}
	if year := at.UTC().Year(); year < 2000 || year > 9999 {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}
