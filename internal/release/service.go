package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// Params configures a [Service]; every member must be set.
type Params struct {
	Store Store
	// Guard returns nil, or why nothing may be written now.
	Guard func() error
	// Tally counts repeats and conflicts.
	Tally *idempotency.Tally
	Clock func() time.Time
	// Random is where ids come from: crypto/rand.Reader.
	Random io.Reader
}

// Service makes and finds markers.
type Service struct{ params Params }

// policy is how deploy markers treat their keys.
var policy = idempotency.ReleaseMarker()

// KeyPolicy says how deploy markers treat their keys.
func KeyPolicy() *idempotency.Policy { return &policy }

// NewService returns a Service.
func NewService(p Params) *Service {
	return &Service{params: p}
}

// DeployParams is a request for a deploy marker.
type DeployParams struct {
	ProjectID string
	// Key has the form that [KeyPolicy] demands.
	Key string
	// Body is the body, decoded in transit but not yet read as JSON.
	Body []byte
	// Decode reads the content from Body. It is only called when the key is
	// free, and refuses with invalid_json and validation_failed.
	Decode func() (Content, error)
}

// Deploy makes a marker, or returns the one that the key names already and
// true. Errors: *idempotency.Error for a key that names a marker made from
// another body, the faults of Decode, validation_failed, unavailable (with
// applied false or "unknown"). Every error but the first and "unknown" leaves
// the key free.
func (s *Service) Deploy(ctx context.Context, p DeployParams) (m Marker, replayed bool, err error) {
	r := idempotency.Request{Policy: &policy, Scope: p.ProjectID, Key: p.Key, Body: p.Body}
	result, fresh, err := s.params.Store.Judge(ctx, r)
	if err != nil {
		return Marker{}, false, s.refused(r, err)
	}
	if !fresh {
		return s.replay(ctx, r, result)
	}
	content, err := p.Decode()
	if err != nil {
		return Marker{}, false, err
	}
	if m, err = s.draft(p.ProjectID, Deploy, content); err != nil {
		return Marker{}, false, err
	}
	result, err = s.params.Store.Deploy(ctx, r, m)
	if err != nil {
		return Marker{}, false, s.refused(r, err)
	}
	if result.Replayed {
		return s.replay(ctx, r, result)
	}
	return m, false, nil
}

// replay reads the marker that a key names as it is now.
func (s *Service) replay(ctx context.Context, r idempotency.Request, result idempotency.Result) (Marker, bool, error) {
	m, found, err := s.params.Store.FindMarker(ctx, r.Scope, result.Record.Resource.ID)
	if err != nil {
		return Marker{}, false, fmt.Errorf("read the marker of a key: %w", err)
	}
	if !found {
		return Marker{}, false, errors.New("a key names a marker that does not exist")
	}
	s.params.Tally.Repeat(r.Ref())
	return m, true, nil
}

// refused counts conflicts.
func (s *Service) refused(r idempotency.Request, err error) error {
	if errors.Is(err, &idempotency.Error{Problem: idempotency.Mismatch}) {
		s.params.Tally.Conflict(r.Ref())
		return err
	}
	return fmt.Errorf("make a deploy marker: %w", err)
}

// Create makes a marker by hand. Faults: validation_failed, unavailable.
func (s *Service) Create(ctx context.Context, projectID string, c Content) (Marker, error) {
	m, err := s.draft(projectID, Manual, c)
	if err != nil {
		return Marker{}, err
	}
	if err := s.params.Store.CreateMarker(ctx, m); err != nil {
		return Marker{}, fmt.Errorf("make a marker: %w", err)
	}
	return m, nil
}

// draft makes a marker that is not stored yet.
func (s *Service) draft(projectID string, source Source, content Content) (m Marker, err error) {
	if err := content.validate(); err != nil {
		return Marker{}, err
	}
	if err := s.params.Guard(); err != nil {
		return Marker{}, fault.Wrap(api.CodeUnavailable, err, "the server cannot write now").With("applied", false)
	}
	now := s.params.Clock().UTC().Truncate(time.Microsecond)
	m = Marker{ProjectID: projectID, Content: content, Source: source, CreatedAt: now}
	if m.TS.IsZero() {
		m.TS = now
	}
	m.TS = m.TS.UTC().Truncate(time.Microsecond)
	if m.ID, err = id.New(now, s.params.Random); err != nil {
		return Marker{}, err
	}
	return m, nil
}

// Get returns a marker that is not deleted. Fault: not_found.
func (s *Service) Get(ctx context.Context, projectID, markerID string) (Marker, error) {
	if id.Valid(markerID) {
		m, found, err := s.params.Store.FindMarker(ctx, projectID, markerID)
		if err != nil {
			return Marker{}, fmt.Errorf("find a marker: %w", err)
		}
		if found && m.DeletedAt.IsZero() {
			return m, nil
		}
	}
	return Marker{}, notFound()
}

// Delete deletes a marker. Its key stays taken. Faults: not_found, unavailable.
func (s *Service) Delete(ctx context.Context, projectID, markerID string) error {
	found := false
	if id.Valid(markerID) {
		var err error
		if found, err = s.params.Store.DeleteMarker(ctx, projectID, markerID, s.params.Clock()); err != nil {
			return fmt.Errorf("delete a marker: %w", err)
		}
	}
	if !found {
		return notFound()
	}
	return nil
}

func notFound() error { return fault.New(api.CodeNotFound, "there is no such release marker") }

// List returns a page of markers, latest first, and the cursor of the next
// one; cursor is empty for the first page, next for the last. Fault:
// validation_failed.
func (s *Service) List(ctx context.Context, p ListParams, cursor string) (markers []Marker, next string, err error) {
	if p.Before, err = parseCursor(cursor); err != nil {
		return nil, "", err
	}
	if !validText(p.Environment, environmentLimit) {
		return nil, "", nil // no marker has it, and not every store could look for it
	}
	limit := p.Limit
	p.Limit++
	markers, err = s.params.Store.ListMarkers(ctx, p)
	if err != nil {
		return nil, "", fmt.Errorf("list markers: %w", err)
	}
	if len(markers) <= limit {
		return markers, "", nil
	}
	markers = markers[:limit]
	last := markers[limit-1]
	return markers, strconv.FormatInt(last.TS.UnixMicro(), 10) + " " + last.ID, nil
}

func parseCursor(cursor string) (Position, error) {
	if cursor == "" {
		return Position{}, nil
	}
	at, markerID, _ := strings.Cut(cursor, " ")
	micros, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !id.Valid(markerID) {
		return Position{}, fault.Field("cursor", "cursor must be a next_cursor of an earlier answer")
	}
	return Position{TS: time.UnixMicro(micros).UTC(), ID: markerID}, nil
}

// Key is what is known of the key of a deploy marker.
type Key struct {
	Record idempotency.Record
	Marker Marker
}

// FindKey returns what a key names, deleted or not. Fault: not_found when it
// was never used.
func (s *Service) FindKey(ctx context.Context, projectID, key string) (Key, error) {
	unused := fault.New(api.CodeNotFound, "this Idempotency-Key has never been used")
	if !policy.Key.Allows(key) {
		return Key{}, unused
	}
	ref := idempotency.Ref{Scope: projectID, Namespace: policy.Namespace, Key: key}
	record, found, err := s.params.Store.FindKey(ctx, ref)
	if err != nil {
		return Key{}, fmt.Errorf("find a key: %w", err)
	}
	if !found {
		return Key{}, unused
	}
	m, found, err := s.params.Store.FindMarker(ctx, projectID, record.Resource.ID)
	if err != nil {
		return Key{}, fmt.Errorf("find the marker of a key: %w", err)
	}
	if !found {
		return Key{}, errors.New("a key names a marker that does not exist")
	}
	return Key{Record: record, Marker: m}, nil
}
