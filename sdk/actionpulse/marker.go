package actionpulse

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
)

// Markers are a project's release markers, with a user's access token. CI/CD
// makes them with [DeployMarkers].
type Markers struct{ link *link }

const markersPath = projectPath + "/release-markers"

// ListMarkers says which markers are asked for; what is empty does not narrow.
type ListMarkers struct {
	Page
	// From and To bound their ts; To is not included.
	From, To    time.Time
	Environment string
}

// List returns a page of markers, latest first.
func (m *Markers) List(ctx context.Context, projectID string, p ListMarkers) (*api.List[api.Marker], error) {
	q := p.Page.query()
	setTime(q, "from", p.From)
	setTime(q, "to", p.To)
	setText(q, "environment", p.Environment)
	return list[api.Marker](ctx, m.link, reads("listMarkers", markersPath, projectID).ask(q))
}

// All yields every marker from p on, latest first.
func (m *Markers) All(ctx context.Context, projectID string, p ListMarkers) iter.Seq2[api.Marker, error] {
	return all(p.Page, func(page Page) (*api.List[api.Marker], error) {
		p := p
		p.Page = page
		return m.List(ctx, projectID, p)
	})
}

// OfKey returns the marker that an Idempotency-Key has made, deleted or not,
// and what is known of the key; not_found if it was never used.
func (m *Markers) OfKey(ctx context.Context, projectID, key string) (*api.MarkerOfKey, error) {
	c := reads("listMarkers", markersPath, projectID).ask(url.Values{"idempotency_key": {key}})
	return fetch[api.MarkerOfKey](ctx, m.link, c)
}

// Create makes a marker by hand. A repeat makes a second one.
func (m *Markers) Create(ctx context.Context, projectID string, content api.MarkerContent) (*api.Marker, error) {
	return fetch[api.Marker](ctx, m.link, changes("createMarker", http.MethodPost, markersPath, projectID).with(content))
}

// Get returns a marker; not_found if there is none.
func (m *Markers) Get(ctx context.Context, projectID, markerID string) (*api.Marker, error) {
	return fetch[api.Marker](ctx, m.link, reads("getMarker", markersPath+"/{marker_id}", projectID, markerID))
}

// Delete takes a marker away.
func (m *Markers) Delete(ctx context.Context, projectID, markerID string) error {
	return perform(ctx, m.link, changes("deleteMarker", http.MethodDelete, markersPath+"/{marker_id}", projectID, markerID))
}

// DeployMarkers makes release markers of one project from CI/CD.
type DeployMarkers struct {
	link      *link
	projectID string
}

// NewDeployMarkers makes a client with a CI/CD token, which works for its own
// project only. It refuses what [New] refuses, and a token in place of the
// project's id, which would stand in URLs.
func NewDeployMarkers(server, token, projectID string, options ...Option) (*DeployMarkers, error) {
	if uuid.Validate(projectID) != nil {
		return nil, errors.New("the project's id is not a UUID")
	}
	l, err := newKeyLink(server, token, options)
	if err != nil {
		return nil, err
	}
	return &DeployMarkers{link: l, projectID: projectID}, nil
}

// DeployMarker is a marker that was made, by this call or before it.
type DeployMarker struct {
	api.Marker
	// IdempotencyKey is the key that was sent.
	IdempotencyKey string `json:"-"`
	// Replayed says that an earlier request with the key has made the marker,
	// perhaps an earlier attempt of this call. It may have been deleted since.
	Replayed bool `json:"-"`
}

// Create makes a marker, once for each key. A step that may run again takes a
// key that is the same then, [WithKey], and a TS that is the same, or none. A
// key that was used for another marker is refused with validation_failed and
// the status 409; [Error.Conflict] says what differs.
func (d *DeployMarkers) Create(ctx context.Context, content api.MarkerContent, options ...KeyOption) (*DeployMarker, error) {
	key, err := d.link.keyOf(options, CheckDeployKey)
	c := keyed("createDeployMarker", markersPath+"/deploy", key, d.projectID).with(content)
	if err != nil {
		return nil, c.refusedHere(err)
	}
	marker, r, err := exchange[DeployMarker](ctx, d.link, c)
	if err != nil {
		return nil, err
	}
	marker.IdempotencyKey, marker.Replayed = key, r.replayed()
	return marker, nil
}
