// Package alert owns alerts on a metric: what is watched, how its periods are
// judged, when an alert fires and is resolved, and what is told of it.
//
// Invariants:
//   - a period of an alert is judged at most once, whatever the number of
//     processes and crashes: the row of its evaluation is the first thing
//     that the judging transaction writes;
//   - the verdict, the alert's state, its history and the messages of webhooks
//     are written in that one transaction; nothing is asked of the event store
//     within it;
//   - a period is judged only once everything that was acknowledged before its
//     end can be queried, and by no clock that is ahead alone;
//   - what is not known never makes an alert fire, and never resolves one;
//   - alert.resolved is sent only for what alert.fired was sent for.
//
// It never sends anything itself, and it never reads events but through the
// package query.
package alert

import (
	"time"
)

// MaxAlerts is how many alerts a project may have.
const MaxAlerts = 100

// Alert is an alert and how it stands.
type Alert struct {
	ID, ProjectID string
	Definition

	// Revision moves on with each change of what is watched.
	Revision int64
	// Next is the period to be judged next.
	Next Period
	Status
	Mute

	// Last is the period that was judged last, nil before the first.
	Last *Evaluation

	CreatedAt, UpdatedAt time.Time
	// DeletedAt is zero unless it was deleted.
	DeletedAt time.Time
}

// State says whether an alert fires.
type State string

// The states:
//
//	ok ──`for` bad periods in a row──▶ firing
//	 ◀── `resolve_after` good ones, by hand, changed or deleted ──┘
const (
	OK     State = "ok"
	Firing State = "firing"
)

// Status is how an alert stands.
type Status struct {
	State State
	// GoodRun and BadRun are how many periods in a row were good, or bad; one
	// of them is 0.
	GoodRun, BadRun int64
	// FiringSince is the end of the period that made it fire, FiredEntry the
	// entry of the history that says so, Told whether endpoints were told.
	FiringSince time.Time
	FiredEntry  string
	Told        bool
	// Problem is why it is not known how the metric stands; empty if it is.
	Problem      Problem
	ProblemSince time.Time
	// Attempts counts the failed attempts at the next period; RetryAt is when
	// it is tried again.
	Attempts int64
	RetryAt  time.Time
}

// Mute says whether an alert is muted: it is judged and recorded, and nothing
// is sent.
type Mute struct {
	// MutedAt is zero if it is not muted. MutedUntil is zero for ever.
	MutedAt, MutedUntil time.Time
}

// Muted says whether nothing is sent at a time.
func (m Mute) Muted(at time.Time) bool {
	return !m.MutedAt.IsZero() && (m.MutedUntil.IsZero() || at.Before(m.MutedUntil))
}

// Verdict is what a period was judged to be.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "good"
	Bad     Verdict = "bad"
	Unknown Verdict = "unknown"
)

// Problem is why a verdict is unknown. It is part of the API: never renamed.
type Problem string

// The problems.
const (
	// NoData: nothing or too little was counted in the period.
	NoData Problem = "no_data"
	// NoBaseline: there is nothing to compare with.
	NoBaseline Problem = "no_baseline"
	// QueryTimeout: the query took too long.
	QueryTimeout Problem = "query_timeout"
	// QueryFailed: the metric could not be read.
	QueryFailed Problem = "query_failed"
)

// Evaluation is a period that was judged.
type Evaluation struct {
	Period Period
	Judgement

	At time.Time
}

// Judgement is what a period was found to be.
type Judgement struct {
	Verdict Verdict
	// Problem is set if the verdict is unknown.
	Problem Problem
	// Value is nil if it is not known; Baseline if there is none.
	Value, Baseline *float64
}

// Change is by how many per cent the value differs from the baseline; nil if
// there is none, or if it is 0.
func (j *Judgement) Change() *float64 {
	if j.Value == nil || j.Baseline == nil || *j.Baseline == 0 {
		return nil
	}
	return new((*j.Value - *j.Baseline) / *j.Baseline * percent)
}
