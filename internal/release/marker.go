// Package release owns release markers: the points in time at which a version
// of a project's software was released, made by a CI/CD pipeline or by hand.
//
// Invariants:
//   - within a project an Idempotency-Key names one marker, for ever; a repeat
//     gets that marker as it is now, deleted or not;
//   - a marker's content never changes; it can only be deleted;
//   - nothing is validated or looked up for a key that is taken: what the key
//     names is decided by the raw body alone.
//
// It never decides who may call it and never reads a header.
package release

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Source says who made a marker.
type Source string

// The sources.
const (
	Deploy Source = "deploy"
	Manual Source = "manual"
)

// DefaultEnvironment is where a release is when nothing is said.
const DefaultEnvironment = "production"

// Kind names markers as a unit of work.
const Kind = "release_marker"

// Marker is a release marker.
type Marker struct {
	ID        string
	ProjectID string
	Content

	Source    Source
	CreatedAt time.Time
	// DeletedAt is zero unless the marker was deleted.
	DeletedAt time.Time
}

// Content is what the maker of a marker says.
type Content struct {
	Version     string // 1–200 characters
	Environment string // 1–100 characters
	// TS is when the release took place, to the microsecond; zero stands for
	// the time the marker is made.
	TS     time.Time
	Commit string // at most 200 characters; empty for none
	URL    string // http or https, at most 2,000 bytes; empty for none
	Title  string // at most 500 characters; empty for none
	// Metadata is the members of a JSON object that has at most 16 KiB; nil for
	// none.
	Metadata map[string]json.RawMessage
}

// The longest of each.
const (
	versionLimit     = 200    // characters
	environmentLimit = 100    // characters
	commitLimit      = 200    // characters
	titleLimit       = 500    // characters
	urlLimit         = 2000   // bytes
	metadataLimit    = 16_384 // bytes
)

// validate checks the content and fills in the default environment. Fault:
// validation_failed, with the member at fault.
func (c *Content) validate() error {
	if c.Environment == "" {
		c.Environment = DefaultEnvironment
	}
	for _, text := range []struct {
		field, value string
		limit        int
		required     bool
	}{
		{"version", c.Version, versionLimit, true},
		{"environment", c.Environment, environmentLimit, true},
		{"commit", c.Commit, commitLimit, false},
		{"title", c.Title, titleLimit, false},
	} {
		if !validText(text.value, text.limit) || text.required && strings.TrimSpace(text.value) == "" {
			return fault.Field(text.field, "%s is a text of at most %d characters without control characters, and not blank",
				text.field, text.limit)
		}
	}
	if c.URL != "" && !validURL(c.URL) {
		return fault.Field("url", "url is an http or https URL of at most %d bytes", urlLimit)
	}
	if sizeOf(c.Metadata) > metadataLimit {
		return fault.Field("metadata", "metadata holds at most %d bytes", metadataLimit)
	}
	if year := c.TS.UTC().Year(); !c.TS.IsZero() && (year < 1970 || year > 9999) {
		return fault.Field("ts", "ts is a time from 1970 to 9999")
	}
	return nil
}

// sizeOf is the length of an object's members as they were sent, in bytes,
// with their names and punctuation.
func sizeOf(members map[string]json.RawMessage) int {
	n := len("{}")
	for name, value := range members {
		n += len(name) + len(value) + len(`"":,`)
	}
	return n
}

func validText(s string, limit int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= limit && !strings.ContainsFunc(s, unicode.IsControl)
}

func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= urlLimit && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) })
}

// Store keeps markers and their keys.
type Store interface {
	// Judge says what a request's key means; fresh that it is worth trying. It
	// returns an *idempotency.Error for a key that another request has taken.
	Judge(ctx context.Context, r idempotency.Request) (result idempotency.Result, fresh bool, err error)
	// Deploy stores a marker with its key in one transaction, or finds that
	// the key names one already. Errors are those of Judge, and the fault
	// unavailable with applied "unknown" when no answer to COMMIT could be had.
	Deploy(ctx context.Context, r idempotency.Request, m Marker) (idempotency.Result, error)
	// CreateMarker stores a marker.
	CreateMarker(ctx context.Context, m Marker) error
	// FindMarker returns a project's marker, deleted or not, and whether there
	// is one.
	FindMarker(ctx context.Context, projectID, id string) (Marker, bool, error)
	// ListMarkers returns at most limit markers that are not deleted, latest
	// first, in the order of (TS, ID).
	ListMarkers(ctx context.Context, p ListParams) ([]Marker, error)
	// DeleteMarker notes the time of deletion, and reports whether the project
	// had such a marker that was not deleted.
	DeleteMarker(ctx context.Context, projectID, id string, at time.Time) (bool, error)
	// FindKey returns what is known of a key and whether it was used.
	FindKey(ctx context.Context, ref idempotency.Ref) (idempotency.Record, bool, error)
}

// ListParams says which markers to list.
type ListParams struct {
	ProjectID string
	// From and To are a half-open range of TS; zero is no bound.
	From, To time.Time
	// Environment is empty for all.
	Environment string
	// Before is the last marker of the page before; zero for the first page.
	Before Position
	Limit  int
}

// Position is a place in the list.
type Position struct {
	TS time.Time
	ID string
}
