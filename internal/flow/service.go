package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

// Params configures [Service]; every member must be set, but those that have a
// default.
type Params struct {
	Store Store
	// Types are the types of steps that definitions may use.
	Types []step.Type
	// Guard returns nil, or why nothing may be written now.
	Guard func() error
	Clock func() time.Time
	// MaxPrograms and MaxProgramBytes bound the compiled versions that are
	// kept: how many, and how long their definitions are together. The
	// defaults are for 0.
	MaxPrograms     int
	MaxProgramBytes int64
}

// Service publishes versions of flows and finds them again.
//
// Invariants:
//   - a version never changes, and the numbers of a flow's versions are 1 … latest;
//   - what is stored was compiled by this program or an older one;
//   - an archived flow is never found by [Service.Find].
type Service struct {
	params   Params
	versions *versionCache
}

// NewService returns a Service.
func NewService(p Params) *Service {
	return &Service{params: p, versions: newVersionCache(p)}
}

// Schema is a JSON Schema of definitions, for editors.
func (s *Service) Schema() json.RawMessage { return Schema(s.params.Types) }

// PublishParams says what is to be published.
type PublishParams struct {
	ProjectID string
	Slug      string
	// Source is the definition, in the form that Format says.
	Source []byte
	Format Format
}

var slugs = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// IsSlug reports whether a flow may have this name. Stores are asked for no
// other.
func IsSlug(text string) bool { return slugs.MatchString(text) }

// Publish makes a definition the next version of a flow, which it makes if it
// is not there, and says whether it has: a definition that is equal to the
// latest version is that version. Faults: invalid_json; invalid_request, with
// all that is wrong in details.issues; conflict if the flow is archived;
// unavailable.
func (s *Service) Publish(ctx context.Context, p PublishParams) (Flow, bool, error) {
	if !IsSlug(p.Slug) {
		return Flow{}, false, fault.New(api.CodeInvalidRequest,
			"slug must be 1 to 64 small letters, digits, - and _, beginning with a letter or digit").With("field", "slug")
	}
	definition, err := s.compile(p.Source, p.Format)
	if err != nil {
		return Flow{}, false, err
	}
	if err := s.writable(); err != nil {
		return Flow{}, false, err
	}
	f, created, err := s.params.Store.Publish(ctx, NewVersion{
		ProjectID: p.ProjectID, Slug: p.Slug, Definition: definition, CreatedAt: s.params.Clock(),
	})
	if err != nil {
		return Flow{}, false, fmt.Errorf("publish a flow: %w", err)
	}
	if !f.ArchivedAt.IsZero() {
		return Flow{}, false, fault.New(api.CodeConflict, "the flow is archived; unarchive it to publish").With("archived", true)
	}
	return f, created, nil
}

// compile returns the canonical form of a definition that compiles.
func (s *Service) compile(source []byte, format Format) ([]byte, error) {
	canonical, _, err := CompileSource(s.params.Types, source, format)
	if issues, ok := errors.AsType[*step.Issues](err); ok {
		return nil, refuse(issues)
	}
	return canonical, err
}

// CompileSource compiles a definition as it was written, and returns its
// canonical form, too. Errors: the fault invalid_json for what is no JSON if it
// should be, [*step.Issues] with all that is wrong otherwise.
func CompileSource(types []step.Type, source []byte, format Format) ([]byte, *Program, error) {
	if format == JSON {
		if err := jsonsyntax.Check(source); err != nil {
			return nil, nil, err
		}
	}
	canonical, err := Canonical(source, format)
	if err != nil {
		return nil, nil, err
	}
	program, err := Compile(types, canonical)
	return canonical, program, err
}

// Get returns a flow, and of its versions the one that is asked for; 0 is the
// latest. Fault: flow_not_found.
func (s *Service) Get(ctx context.Context, projectID, slug string, version int64) (Flow, error) {
	if !IsSlug(slug) {
		return Flow{}, noFlow()
	}
	f, found, err := s.params.Store.Find(ctx, projectID, slug, version)
	if err != nil {
		return Flow{}, fmt.Errorf("find a flow: %w", err)
	}
	if !found {
		return Flow{}, noFlow()
	}
	return f, nil
}

// List returns up to limit flows in order of their slugs, of those after one;
// without their definitions.
func (s *Service) List(ctx context.Context, projectID, after string, limit int) ([]Flow, error) {
	list, err := s.params.Store.List(ctx, projectID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list flows: %w", err)
	}
	return list, nil
}

// Versions returns up to limit versions of a flow, the latest first, of those
// before a number, 0 for all; without their definitions. Fault: flow_not_found.
func (s *Service) Versions(ctx context.Context, projectID, slug string, p VersionsParams) (Flow, []Published, error) {
	f, err := s.Get(ctx, projectID, slug, 0)
	if err != nil {
		return Flow{}, nil, err
	}
	list, err := s.params.Store.Versions(ctx, f.ID, p)
	if err != nil {
		return Flow{}, nil, fmt.Errorf("list versions of a flow: %w", err)
	}
	return f, list, nil
}

// Diff returns what has changed between two versions. Fault: flow_not_found.
func (s *Service) Diff(ctx context.Context, projectID, slug string, from, to int64) ([]Change, error) {
	a, err := s.Get(ctx, projectID, slug, from)
	if err != nil {
		return nil, err
	}
	b, err := s.Get(ctx, projectID, slug, to)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(a.Shown.Definition, b.Shown.Definition) {
		return nil, nil
	}
	return Diff(a.Shown.Definition, b.Shown.Definition), nil
}

// Pin has a version executed when none is asked for; 0 has the latest executed
// again. Faults: flow_not_found, also if there is no such version; unavailable.
func (s *Service) Pin(ctx context.Context, projectID, slug string, version int64) (Flow, error) {
	return s.change(ctx, projectID, slug, func() (bool, error) {
		return s.params.Store.Pin(ctx, projectID, slug, version)
	})
}

// Archive has a flow be neither published nor executed any more; executions
// that exist go on. A repeat changes nothing. Faults: flow_not_found,
// unavailable.
func (s *Service) Archive(ctx context.Context, projectID, slug string) (Flow, error) {
	return s.change(ctx, projectID, slug, func() (bool, error) {
		return s.params.Store.Archive(ctx, projectID, slug, s.params.Clock())
	})
}

// Unarchive undoes [Service.Archive]. Faults: flow_not_found, unavailable.
func (s *Service) Unarchive(ctx context.Context, projectID, slug string) (Flow, error) {
	return s.change(ctx, projectID, slug, func() (bool, error) {
		return s.params.Store.Archive(ctx, projectID, slug, time.Time{})
	})
}

// change makes a change to a flow and returns the flow as it is then.
func (s *Service) change(ctx context.Context, projectID, slug string, apply func() (found bool, err error)) (Flow, error) {
	if !IsSlug(slug) {
		return Flow{}, noFlow()
	}
	if err := s.writable(); err != nil {
		return Flow{}, err
	}
	found, err := apply()
	if err != nil {
		return Flow{}, fmt.Errorf("change a flow: %w", err)
	}
	if !found {
		return Flow{}, noFlow()
	}
	return s.Get(ctx, projectID, slug, 0)
}

func (s *Service) writable() error {
	if err := s.params.Guard(); err != nil {
		return fault.Wrap(api.CodeUnavailable, err, "the server cannot write now").With("applied", false)
	}
	return nil
}

func noFlow() *fault.Error {
	return fault.New(api.CodeFlowNotFound, "there is no such flow or version")
}
