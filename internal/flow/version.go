package flow

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Flow is a flow of a project, and one of its versions.
type Flow struct {
	ID   int64
	Slug string
	// Latest is the highest number of its versions.
	Latest int64
	// Pinned is the version that is executed when none is asked for; 0: the
	// latest.
	Pinned int64
	// ArchivedAt is zero for a flow that is not archived.
	ArchivedAt time.Time
	// Shown is one of its versions.
	Shown Published
}

// Published is a version of a flow as it is stored.
type Published struct {
	// Number counts from 1.
	Number int64
	// Definition is canonical JSON; nil in lists.
	Definition []byte
	CreatedAt  time.Time
}

// Version is a version of a flow that can be executed. It never changes, and
// may be shared.
type Version struct {
	FlowID, Number  int64
	ProjectID, Slug string
	// Definition is canonical JSON.
	Definition []byte
	CreatedAt  time.Time
	Program    *Program
}

// NewVersion is what is to become a version of a flow.
type NewVersion struct {
	ProjectID string
	Slug      string
	// Definition is canonical JSON.
	Definition []byte
	CreatedAt  time.Time
}

// VersionsParams says which versions to list.
type VersionsParams struct {
	// Before is a number; 0 is all of them.
	Before int64
	Limit  int
}

// Store keeps flows and their versions.
type Store interface {
	// Publish adds a version to a flow, which it makes if it is not there, and
	// says whether it has. It has not if the flow is archived, or if its latest
	// version has the same bytes. It returns the flow as it is then, with the
	// latest version. What others publish at the same time comes before or
	// after.
	Publish(ctx context.Context, v NewVersion) (f Flow, created bool, err error)
	// Find returns a flow and one of its versions, 0 being the latest, and
	// whether there are both.
	Find(ctx context.Context, projectID, slug string, version int64) (Flow, bool, error)
	// Look is Find without a version: Shown is empty.
	Look(ctx context.Context, projectID, slug string) (Flow, bool, error)
	// List returns up to limit flows in order of the bytes of their slugs, of
	// those after one, each with its latest version without the definition.
	List(ctx context.Context, projectID, after string, limit int) ([]Flow, error)
	// Versions returns versions of a flow, the latest first, without their
	// definitions.
	Versions(ctx context.Context, flowID int64, p VersionsParams) ([]Published, error)
	// Load returns a version that exists, without a program.
	Load(ctx context.Context, flowID, version int64) (Version, error)
	// Pin notes the version that is executed when none is asked for, 0 being
	// the latest, and says whether there are such a flow and version.
	Pin(ctx context.Context, projectID, slug string, version int64) (found bool, err error)
	// Archive notes since when a flow is archived, if it is not yet, and for
	// the zero time that it is not; it says whether there is such a flow.
	Archive(ctx context.Context, projectID, slug string, at time.Time) (found bool, err error)
}

// Find returns the version of a flow that is to be executed: the one that is
// asked for, and for 0 the pinned one, else the latest. Fault: flow_not_found,
// with the detail archived if that is why.
func (s *Service) Find(ctx context.Context, projectID, slug string, version int64) (*Version, error) {
	if !IsSlug(slug) {
		return nil, noFlow()
	}
	f, found, err := s.params.Store.Look(ctx, projectID, slug)
	if err != nil {
		return nil, fmt.Errorf("find a flow: %w", err)
	}
	if found && !f.ArchivedAt.IsZero() {
		return nil, fault.New(api.CodeFlowNotFound, "the flow is archived").With("archived", true)
	}
	if version == 0 {
		version = f.Pinned
	}
	if version == 0 {
		version = f.Latest
	}
	if !found || version < 1 || version > f.Latest {
		return nil, noFlow()
	}
	return s.Load(ctx, f.ID, version)
}

// Load returns a version of a flow, archived or not. It must exist: this is for
// executions, which name one.
func (s *Service) Load(ctx context.Context, flowID, version int64) (*Version, error) {
	return s.versions.get(ctx, versionKey{flowID, version}, func(ctx context.Context) (*Version, error) {
		v, err := s.params.Store.Load(ctx, flowID, version)
		if err != nil {
			return nil, fmt.Errorf("load a version of a flow: %w", err)
		}
		if v.Program, err = Compile(s.params.Types, v.Definition); err != nil {
			return nil, fmt.Errorf("compile version %d of flow %d: %w", version, flowID, err)
		}
		return &v, nil
	})
}
