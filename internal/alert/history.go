package alert

import (
	"time"

	"github.com/actionpulse/actionpulse/internal/release"
)

// EntryKind says what an entry of the history tells of. It is part of the API:
// never renamed.
type EntryKind string

// The kinds of entries.
const (
	// Fired: it began to fire.
	Fired EntryKind = "fired"
	// Announced: it fires still after a mute, and endpoints are told only now.
	Announced EntryKind = "announced"
	// Resolved: it fires no more; the reason says why.
	Resolved EntryKind = "resolved"
	// MutedEntry and UnmutedEntry: somebody has muted it, or ended that.
	MutedEntry   EntryKind = "muted"
	UnmutedEntry EntryKind = "unmuted"
	// Changed: what is watched was changed; it begins anew.
	Changed EntryKind = "changed"
	// Skipped: periods were passed over after a downtime.
	Skipped EntryKind = "skipped"
	// Problems: from this period on it is not known how the metric stands.
	Problems EntryKind = "problem"
)

// Reason says why an alert was resolved.
type Reason string

// The reasons.
const (
	Recovered Reason = "recovered"
	ByHand    Reason = "by_hand"
	// Redefined: what is watched was changed.
	Redefined Reason = "changed"
	Deleted   Reason = "deleted"
)

// Entry tells of one thing that has become of an alert.
type Entry struct {
	// Number orders the entries; set by the store.
	Number int64
	ID     string
	Kind   EntryKind
	At     time.Time
	// UserID is who did it; empty if a period did.
	UserID string
	Reason Reason
	// Period is zero if it is not about one.
	Period          Period
	Value, Baseline *float64
	Problem         Problem
	// Until is when a mute ends; zero for ever.
	Until time.Time
	// Periods is how many were passed over.
	Periods int64
	// Muted says that nothing was sent because the alert was muted.
	Muted bool
	// Releases are the markers near the period.
	Releases []Release
}

// Release is a release marker as an alert shows it.
type Release struct {
	ID          string    `json:"id"`
	Version     string    `json:"version"`
	Environment string    `json:"environment"`
	TS          time.Time `json:"ts"`
	Commit      string    `json:"commit,omitempty"`
	URL         string    `json:"url,omitempty"`
}

const (
	// MaxReleases is how many markers are shown beside a change, and
	// releasesBefore how long before the period's start they begin.
	MaxReleases    = 10
	releasesBefore = 24 * time.Hour
)

// Near is the range of time whose release markers are shown beside a period.
func Near(p Period) (from, to time.Time) { return p.Start.Add(-releasesBefore), p.End }

// ReleasesOf shows markers.
func ReleasesOf(markers []release.Marker) []Release {
	all := make([]Release, len(markers))
	for i := range markers {
		m := &markers[i]
		all[i] = Release{ID: m.ID, Version: m.Version, Environment: m.Environment, TS: m.TS, Commit: m.Commit, URL: m.URL}
	}
	return all
}
