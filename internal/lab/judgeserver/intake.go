package judgeserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
	"github.com/actionpulse/actionpulse/internal/lab/report"
	"github.com/actionpulse/actionpulse/retry"
)

const (
	sourceIntake = "docs/guides/sending-events.md: an event with an id is stored exactly once"
	// batchSize is how many events a batch of a trial has.
	batchSize = 20
	// storedWithin is how long after the last event was taken all must be there.
	storedWithin = time.Minute
)

// Intake is what takes events, and how they are counted afterwards.
type Intake struct{ server ActionPulse }

// Intake returns the intake of the server.
func (a ActionPulse) Intake() *Intake { return &Intake{a} }

// intakeTrial is one way to send events, each under a name of its own.
type intakeTrial struct {
	id, title string
	try       func(*intakeJudge, context.Context, string) (sent int, f finding)
}

func intakeTrials() []intakeTrial {
	return []intakeTrial{
		{"intake-repeat", "a batch that is sent again is stored once, and its events are counted as duplicates", (*intakeJudge).repeat},
		{"intake-overlap", "of batches that share events, each event is stored once", (*intakeJudge).overlap},
		{"intake-race", "equal batches at once are stored once, and one of them is the first", (*intakeJudge).race},
		{"intake-rejected", "an item that is rejected keeps none of its neighbours out, on any attempt", (*intakeJudge).rejected},
		{"intake-faults", "batches through a network that loses, doubles and cuts are stored exactly once", (*intakeJudge).faults},
		{"intake-restart", "what was acknowledged before a restart is stored, once, also if it is sent again", (*intakeJudge).restart},
	}
}

type intakeJudge struct {
	judge

	server ActionPulse
	// acknowledged is the server's time of the latest 202.
	acknowledged time.Time
}

// judgeIntake tries all and counts at the end.
func judgeIntake(ctx context.Context, o Options, c *client) ([]report.Check, error) {
	j := &intakeJudge{judge: judge{options: o, client: c}, server: o.Intake.server}
	var checks []report.Check
	names, sent := []string{}, map[string]int{}
	for _, t := range intakeTrials() {
		fmt.Fprintf(o.Progress, "%s\n", t.id) //nolint:errcheck // the report comes anyway
		name := "lab-" + o.Name + "-" + t.id
		n, f := t.try(j, ctx, name)
		names, sent[name] = append(names, name), n
		checks = append(checks, report.Check{ID: t.id, Title: t.title, Source: sourceIntake, Verdict: f.verdict, Evidence: f.evidence})
	}
	stored, err := j.stored(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("counting the events: %w", err)
	}
	for i, name := range names {
		if checks[i].Verdict == report.NotTested {
			continue
		}
		f := pass("%s: %d events were sent, %d are stored", name, sent[name], stored[name])
		if stored[name] != sent[name] {
			f.verdict = report.Fail
		}
		f = f.and(finding{checks[i].Verdict, checks[i].Evidence})
		checks[i].Verdict, checks[i].Evidence = f.verdict, f.evidence
	}
	return checks, nil
}

func newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	return ids
}

func (j *intakeJudge) batch(name string, ids []string) request {
	items := make([]object, len(ids))
	for i, id := range ids {
		items[i] = object{"event_id": id, "event": name, "anon_id": "lab"}
	}
	body, _ := json.Marshal(object{"events": items}) //nolint:errchkjson // objects of texts always marshal
	return request{method: http.MethodPost, url: j.server.URL + "/v1/track", header: bearer(j.server.IngestKey), body: body}
}

// taken reads the counts of a 202.
func (j *intakeJudge) taken(a answer) (api.TrackResponse, error) {
	var counts api.TrackResponse
	if a.err != nil || a.status != http.StatusAccepted {
		return counts, errors.New(a.short())
	}
	if err := json.Unmarshal(a.body, &counts); err != nil {
		return counts, err
	}
	at, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		at = j.options.Now()
	}
	// The header has whole seconds, cut off.
	if at = at.Add(time.Second); at.After(j.acknowledged) {
		j.acknowledged = at
	}
	return counts, nil
}

// expect sees that an answer counts so many accepted and duplicate events.
func (j *intakeJudge) expect(what string, a answer, accepted, duplicates int) finding {
	counts, err := j.taken(a)
	if err != nil {
		return fail("%s: %v", what, err)
	}
	if counts.Accepted != accepted || counts.Duplicates != duplicates {
		return fail("%s: %d accepted, %d duplicates, where %d and %d were due", what, counts.Accepted, counts.Duplicates, accepted, duplicates)
	}
	return pass("%s: %d accepted, %d duplicates", what, counts.Accepted, counts.Duplicates)
}

func (j *intakeJudge) repeat(ctx context.Context, name string) (int, finding) {
	r := j.batch(name, newIDs(batchSize))
	f := j.expect("the batch", j.client.send(ctx, r), batchSize, 0)
	for range 2 {
		f = f.and(j.expect("its repeat", j.client.send(ctx, r), batchSize, batchSize))
	}
	return batchSize, f
}

func (j *intakeJudge) overlap(ctx context.Context, name string) (int, finding) {
	ids := newIDs(batchSize + batchSize/2)
	half := batchSize / 2
	f := j.expect("the first batch", j.client.send(ctx, j.batch(name, ids[:batchSize])), batchSize, 0)
	f = f.and(j.expect("one that shares half", j.client.send(ctx, j.batch(name, ids[half:])), batchSize, half))
	f = f.and(j.expect("all of them", j.client.send(ctx, j.batch(name, ids)), len(ids), len(ids)))
	twice := j.expect("one event twice", j.client.send(ctx, j.batch(name, []string{ids[0], ids[0]})), 2, 2)
	return len(ids), f.and(twice)
}

func (j *intakeJudge) race(ctx context.Context, name string) (int, finding) {
	requests := make([]request, j.options.AtOnce)
	requests[0] = j.batch(name, newIDs(batchSize))
	for i := range requests {
		requests[i] = requests[0]
	}
	answers := j.client.race(ctx, requests)
	f, fresh := pass("%s", statuses(answers)), 0
	for _, a := range answers {
		counts, err := j.taken(a)
		if err != nil {
			return batchSize, f.and(fail("a batch of the race: %v", err))
		}
		fresh += counts.Accepted - counts.Duplicates
	}
	if fresh != batchSize {
		return batchSize, f.and(fail("%d events of %d are said to be no duplicates", fresh, batchSize))
	}
	return batchSize, f
}

func (j *intakeJudge) rejected(ctx context.Context, name string) (int, finding) {
	ids := newIDs(batchSize)
	ids[7] = "not-an-id"
	r := j.batch(name, ids)
	f := j.expect("a batch with one bad item", j.client.send(ctx, r), batchSize-1, 0)
	return batchSize - 1, f.and(j.expect("its repeat", j.client.send(ctx, r), batchSize-1, batchSize-1))
}

// unkind is a network that does everything that one can do.
var unkind = faultproxy.Faults{
	DropRequest: 0.12, DropAnswer: 0.12, Truncate: 0.12, Duplicate: 0.2, TooMany: 0.05, ServerError: 0.1, Unavailable: 0.1,
}

func (j *intakeJudge) faults(ctx context.Context, name string) (int, finding) {
	const batches = 20
	address, err := url.Parse(j.server.URL)
	if err != nil {
		return 0, inconclusive("%v", err)
	}
	proxy, err := faultproxy.Start(faultproxy.Options{Seed: j.options.Seed, Faults: unkind, Upstream: origin(address)})
	if err != nil {
		return 0, inconclusive("%v", err)
	}
	defer proxy.Close() //nolint:errcheck // the trial is over
	answers := make([]answer, batches)
	var all sync.WaitGroup
	for i := range answers {
		r := j.batch(name, newIDs(batchSize))
		r.through = proxy.URL()
		all.Go(func() { answers[i] = j.settleAs(ctx, retry.Event, r) })
	}
	all.Wait()
	for _, a := range answers {
		if _, err := j.taken(a); err != nil {
			return batches * batchSize, fail("a batch was not taken in spite of repeats: %v", err)
		}
	}
	counts := proxy.Counts()
	return batches * batchSize, pass("%d batches took %d requests, of which %d reached the server", batches, counts.Requests, counts.Deliveries)
}

func (j *intakeJudge) restart(ctx context.Context, name string) (int, finding) {
	if j.options.Restart == nil {
		return 0, notTested("the lab was not told how to restart the server")
	}
	r := j.batch(name, newIDs(batchSize))
	f := j.expect("before the restart", j.client.send(ctx, r), batchSize, 0)
	if err := j.options.Restart(ctx); err != nil {
		return batchSize, f.and(inconclusive("the restart failed: %v", err))
	}
	return batchSize, f.and(j.expect("the same after it", j.settleAs(ctx, retry.Event, r), batchSize, batchSize))
}

// stored counts the events of each name, once all that was acknowledged is
// there.
func (j *intakeJudge) stored(ctx context.Context, names []string) (map[string]int, error) {
	body, err := json.Marshal(object{
		"type": "trend", "interval": "day", "measure": "count", "event": names,
		"from": j.acknowledged.Add(-72 * time.Hour).Format(time.RFC3339), "to": j.acknowledged.Add(72 * time.Hour).Format(time.RFC3339),
	})
	if err != nil {
		return nil, err
	}
	r := request{
		method: http.MethodPost, header: bearer(j.server.AccessToken), body: body,
		url: j.server.URL + "/api/v1/projects/" + url.PathEscape(j.server.ProjectID) + "/query",
	}
	for begun := j.options.Now(); ; {
		counts, through, err := readTrend(j.settleAs(ctx, retry.Read, r))
		if err != nil || !through.Before(j.acknowledged) {
			return counts, err
		}
		if j.options.Now().Sub(begun) > storedWithin {
			return nil, fmt.Errorf("what was acknowledged before %s is not stored after %s", j.acknowledged.Format(time.RFC3339), storedWithin)
		}
		if err := j.options.Sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func readTrend(a answer) (counts map[string]int, through time.Time, err error) {
	if !a.succeeded() {
		return nil, through, errors.New(a.short())
	}
	var trend struct {
		StoredThrough time.Time `json:"stored_through"`
		Series        []struct {
			Event  string `json:"event"`
			Points []struct {
				Value int `json:"value"`
			} `json:"points"`
		} `json:"series"`
	}
	if err := json.Unmarshal(a.body, &trend); err != nil {
		return nil, through, err
	}
	counts = map[string]int{}
	for _, s := range trend.Series {
		for _, p := range s.Points {
			counts[s.Event] += p.Value
		}
	}
	return counts, trend.StoredThrough, nil
}
