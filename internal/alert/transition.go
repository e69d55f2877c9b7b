package alert

import (
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/webhook"
)

// Step is one change of an alert, made where the alert is locked: it alters
// the alert and collects what is written with it.
type Step struct {
	Alert *Alert
	// At is when the step is made; a mute counts by it.
	At time.Time
	// Releases are the markers near the period that the step is about.
	Releases []Release
	// NewID makes ids of entries.
	NewID func() (string, error)
	// UserID is who makes it; empty if a period does.
	UserID string

	// Entries and Messages are what has come of it.
	Entries  []Entry
	Messages []Message
}

// Message is something that endpoints are told. Its id is that of the entry
// which it is about, so that one fact has one id.
type Message struct {
	Ref  string
	Type webhook.Type
	Data any
}

// Judge notes the judgement of the next period, and what follows from it.
func (s *Step) Judge(j Judgement) error {
	a := s.Alert
	p := a.Next
	known := a.Last == nil || a.Last.Verdict != Unknown
	a.Last = &Evaluation{Period: p, Judgement: j, At: s.At}
	a.Next = a.After(p)
	a.Attempts, a.RetryAt = 0, time.Time{}
	a.count(j)
	if a.note(j.Problem, s.At); known && j.Verdict == Unknown {
		if _, err := s.enter(Entry{Kind: Problems, Period: p, Problem: j.Problem}); err != nil {
			return err
		}
	}
	switch {
	case a.State == OK && a.BadRun >= a.For:
		return s.fire(p, j)
	case a.State == Firing && j.Verdict == Bad && !a.Told && !a.Muted(s.At):
		return s.announce(p, j)
	case a.State == Firing && a.GoodRun >= a.ResolveAfter:
		return s.Resolve(Recovered)
	default:
		return nil
	}
}

// count counts the run that a verdict goes on with. What is not known breaks
// both: it is neither a bad period in a row nor a good one.
func (s *Status) count(j Judgement) {
	switch j.Verdict {
	case Good:
		s.GoodRun, s.BadRun = s.GoodRun+1, 0
	case Bad:
		s.GoodRun, s.BadRun = 0, s.BadRun+1
	default:
		s.GoodRun, s.BadRun = 0, 0
	}
}

// note keeps since when there is a problem.
func (s *Status) note(p Problem, at time.Time) {
	switch {
	case p == "":
		s.ProblemSince = time.Time{}
	case s.Problem == "":
		s.ProblemSince = at
	}
	s.Problem = p
}

func (s *Step) fire(p Period, j Judgement) error {
	a := s.Alert
	entry, err := s.enter(Entry{
		Kind: Fired, Period: p, Value: j.Value, Baseline: j.Baseline, Releases: s.Releases, Muted: a.Muted(s.At),
	})
	if err != nil {
		return err
	}
	a.State, a.FiringSince, a.FiredEntry, a.Told = Firing, p.End, entry.ID, !entry.Muted
	if a.Told {
		s.tell(webhook.AlertFired, entry.ID, a.firedData(&entry))
	}
	return nil
}

// announce tells of what has fired during a mute and still does. The message
// has the id that it would have had then.
func (s *Step) announce(p Period, j Judgement) error {
	entry, err := s.enter(Entry{Kind: Announced, Period: p, Value: j.Value, Baseline: j.Baseline, Releases: s.Releases})
	if err != nil {
		return err
	}
	s.Alert.Told = true
	s.tell(webhook.AlertFired, s.Alert.FiredEntry, s.Alert.firedData(&entry))
	return nil
}

// Resolve ends the firing, for a reason. Nothing comes of it if it does not
// fire. What endpoints were told of they are told the end of, also while it is
// muted: they would take it for firing for ever.
func (s *Step) Resolve(reason Reason) error {
	a := s.Alert
	if a.State != Firing {
		return nil
	}
	e := Entry{Kind: Resolved, Reason: reason, Releases: s.Releases, Muted: a.Muted(s.At)}
	if reason == Recovered {
		e.Period, e.Value, e.Baseline = a.Last.Period, a.Last.Value, a.Last.Baseline
	}
	entry, err := s.enter(e)
	if err != nil {
		return err
	}
	if a.Told {
		s.tell(webhook.AlertResolved, entry.ID, a.resolvedData(&entry))
	}
	a.State, a.FiringSince, a.FiredEntry, a.Told = OK, time.Time{}, "", false
	a.GoodRun, a.BadRun = 0, 0
	return nil
}

// Redefine replaces what is watched. If that makes another alert of it than a
// new name does, it begins anew: with a period that was not judged yet.
func (s *Step) Redefine(d Definition) error {
	a := s.Alert
	if a.same(&d) {
		a.Name = d.Name
		return nil
	}
	if err := s.Resolve(Redefined); err != nil {
		return err
	}
	a.Definition = d
	a.Revision++
	judged := time.Time{}
	if a.Last != nil {
		judged = a.Last.Period.End
	}
	a.Next = d.first(s.At, judged)
	a.Status = Status{State: OK}
	_, err := s.enter(Entry{Kind: Changed})
	return err
}

// Skip passes over the periods before p, n of them.
func (s *Step) Skip(p Period, n int64) error {
	a := s.Alert
	_, err := s.enter(Entry{Kind: Skipped, Period: Period{Start: a.Next.Start, End: p.Start}, Periods: n})
	a.Next, a.GoodRun, a.BadRun = p, 0, 0
	a.Attempts, a.RetryAt = 0, time.Time{}
	return err
}

// Mute mutes the alert until a time; zero for ever.
func (s *Step) Mute(until time.Time) error {
	s.Alert.MutedAt, s.Alert.MutedUntil = s.At, until
	_, err := s.enter(Entry{Kind: MutedEntry, Until: until})
	return err
}

// Unmute ends a mute. Nothing comes of it if it is not muted.
func (s *Step) Unmute() error {
	if !s.Alert.Muted(s.At) {
		return nil
	}
	s.Alert.Mute = Mute{}
	_, err := s.enter(Entry{Kind: UnmutedEntry})
	return err
}

func (s *Step) enter(e Entry) (Entry, error) {
	var err error
	if e.ID, err = s.NewID(); err != nil {
		return e, fmt.Errorf("name an entry of an alert's history: %w", err)
	}
	e.At, e.UserID = s.At, s.UserID
	s.Entries = append(s.Entries, e)
	return e, nil
}

func (s *Step) tell(t webhook.Type, ref string, data any) {
	s.Messages = append(s.Messages, Message{Ref: ref, Type: t, Data: data})
}
