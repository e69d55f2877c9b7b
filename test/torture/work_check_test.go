package torture_test

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// storedExecution is an execution as the server shows it.
type storedExecution struct {
	ID      string `json:"id"`
	Key     string `json:"idempotency_key"`
	Status  string `json:"status"`
	Charged string `json:"charged"`
	Error   *struct {
		Code string `json:"code"`
	} `json:"error"`
}

// completeWork sends every unit once more until it has ended, which must change
// nothing where it was acknowledged, and then compares what is stored and what
// was called with what was asked for.
func (x *torture) completeWork() {
	x.Helper()
	l := x.labour
	if l == nil {
		return
	}
	b := x.newBuyer(x.direct, 1000)
	deadline := time.Now().Add(patience)
	for _, u := range l.all {
		for done := false; !done; done = u.flow < 0 || u.end != "" {
			if time.Now().After(deadline) {
				x.Fatalf("%s never ends", u.key)
			}
			if err := b.do(x.Context(), u); err != nil {
				x.Fatal(err)
			}
		}
	}
	x.checkExecutions()
	x.checkBalance()
	if l.repeats == 0 || l.conflicts == 0 {
		x.Errorf("%d repeats, %d conflicts", l.repeats, l.conflicts)
	}
}

// checkExecutions: there is one execution for each request, and no more calls
// than it may have made.
func (x *torture) checkExecutions() {
	x.Helper()
	stored := map[string]storedExecution{}
	for _, one := range x.storedExecutions() {
		if _, twice := stored[one.Key]; twice {
			x.Errorf("%s has two executions", one.Key)
		}
		stored[one.Key] = one
	}
	ends := map[string]int{}
	known := map[string]bool{}
	for _, u := range x.labour.all {
		if u.flow < 0 {
			continue
		}
		one, ok := stored[u.key]
		delete(stored, u.key)
		if !ok || one.ID != u.id || one.Status != u.end {
			x.Errorf("%s was acknowledged as %s, %s; stored is %+v", u.key, u.id, u.end, one)
			continue
		}
		end := one.Status
		if one.Error != nil {
			end += " " + one.Error.Code
		}
		ends[end]++
		x.checkCalls(u, end, known)
	}
	for key, one := range stored {
		x.Errorf("an execution that nobody asked for: %s, %+v", key, one)
	}
	for key, n := range x.labour.callee.calls {
		if !known[key] {
			x.Errorf("%d calls with the key %q, which no step has", n, key)
		}
	}
	x.Logf("%d units of work, %d acknowledged answers, %d repeats, %d conflicts; executions %v; %d calls",
		len(x.labour.all), x.labour.acks, x.labour.repeats, x.labour.conflicts, ends, len(x.labour.callee.calls))
	if ends["succeeded"] == 0 {
		x.Error("nothing has succeeded")
	}
}

// checkCalls: no call was made twice unless its step says that it may be, and
// nothing has succeeded without its calls.
func (x *torture) checkCalls(u *unit, end string, known map[string]bool) {
	x.Helper()
	f := tortured[u.flow]
	if end != "succeeded" && (end != "failed outcome_unknown" || len(f.once) == 0) {
		x.Errorf("%s of %s is %s", u.key, f.slug, end)
	}
	journalled := x.journalled(u.id)
	for _, step := range slices.Concat(f.once, f.again) {
		key := u.id + ":" + step
		known[key] = true
		n := x.labour.callee.count(key)
		switch attempts := journalled[key]; {
		case n > attempts:
			x.Errorf("%s was called %d times, its trace says %d", key, n, attempts)
		case n > 1 && slices.Contains(f.once, step):
			x.Errorf("%s was called %d times", key, n)
		case n == 0 && end == "succeeded":
			x.Errorf("%s has succeeded without a call of %s", u.key, step)
		}
	}
}

// journalled counts the calls of a trace by derived key. A step that has
// finished has one that has succeeded, and it is the last.
func (x *torture) journalled(id string) map[string]int {
	x.Helper()
	var trace struct {
		Steps []tracedStep `json:"steps"`
	}
	x.ask(x.creds.ProjectKey, "/v1/executions/"+id+"/trace", &trace)
	count := map[string]int{}
	for list := trace.Steps; len(list) > 0; list = list[1:] {
		s := list[0]
		list = append(list, s.Steps...)
		for i, c := range s.Calls {
			count[c.DerivedKey]++
			if (c.Status == "succeeded") != (s.Status == "finished" && i == len(s.Calls)-1) || c.Status == "running" {
				x.Errorf("%s: the call %d of %d of step %s, which is %s, is %s", id, i+1, len(s.Calls), s.Step, s.Status, c.Status)
			}
		}
		if s.Status == "started" {
			x.Errorf("%s: step %s is not ended", id, s.Step)
		}
	}
	return count
}

// tracedStep is a step of a trace.
type tracedStep struct {
	Step   string       `json:"step"`
	Status string       `json:"status"`
	Steps  []tracedStep `json:"steps"`
	Calls  []struct {
		Status     string `json:"status"`
		DerivedKey string `json:"derived_key"`
	} `json:"calls"`
}

// checkBalance: the payer has what the movements and the executions leave, and
// nothing is held.
func (x *torture) checkBalance() {
	x.Helper()
	want := 0.0
	for _, u := range x.labour.all {
		want += float64(u.delta)
	}
	for _, one := range x.storedExecutions() {
		var charged float64
		if _, err := fmt.Sscan(one.Charged, &charged); err != nil {
			x.Fatal(err)
		}
		want -= charged
	}
	var customer struct {
		Balances map[string]struct{ Posted, Held string }
	}
	x.ask(x.creds.ProjectKey, "/v1/customers/"+payer, &customer)
	var posted float64
	got := customer.Balances["main"]
	if _, err := fmt.Sscan(got.Posted, &posted); err != nil || got.Held != "0" || posted-want > 1e-4 || want-posted > 1e-4 {
		x.Errorf("the payer has %+v, want %v and nothing held: %v", got, want, err)
	}
}

// storedExecutions are all of the project.
func (x *torture) storedExecutions() []storedExecution {
	x.Helper()
	var all []storedExecution
	for cursor := ""; ; {
		var page struct {
			Items      []storedExecution `json:"items"`
			NextCursor *string           `json:"next_cursor"`
		}
		x.ask(x.creds.ProjectKey, "/v1/executions?limit=200"+cursor, &page)
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}
