package credential

import (
	"context"
	"errors"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
)

var (
	// ErrTaken is returned by a Store when a secret is in use already.
	ErrTaken = errors.New("the secret is in use already")
	// ErrNotFound is returned by a Store when the organization has no such
	// credential, or no such project to put one in.
	ErrNotFound = errors.New("there is no such credential or project")
)

// Store keeps credentials. Errors other than those named are failures of the
// store.
type Store interface {
	// FindCredential returns the credential with this hash and whether there
	// is one. The Role is empty when the user has left the organization.
	FindCredential(ctx context.Context, hash Hash) (Record, bool, error)
	// CreateCredential stores a new credential and the entry about it, gives it
	// the next number and returns it as it is read back. It returns ErrTaken
	// when the secret is in use already, by any organization, and ErrNotFound
	// when the organization has no such project.
	CreateCredential(ctx context.Context, d Draft, e auditlog.Entry) (Record, error)
	// ListCredentials returns at most limit credentials of an organization
	// with numbers above after, in order of number.
	ListCredentials(ctx context.Context, organizationID string, after int64, limit int) ([]Record, error)
	// ListProjectCredentials returns what q asks for, in order of number.
	ListProjectCredentials(ctx context.Context, q ListQuery) ([]Record, error)
	// ChangeCredential has decide look at a credential that nobody else
	// changes meanwhile, and does in the same transaction what it says. The
	// result is the credential that replaces it, if there is one. decide may
	// run several times. ErrNotFound: the organization has no such credential.
	ChangeCredential(ctx context.Context, organizationID, id string, decide func(Record) (Change, error)) (Record, error)
}

// Change is what becomes of a credential. The zero Change is none.
type Change struct {
	// RevokedAt, if set, ends it.
	RevokedAt time.Time
	// ExpiresAt, if set, is when it ends now.
	ExpiresAt time.Time
	// Replacement, if set, is stored beside it.
	Replacement *Draft
	// Entries tell of it.
	Entries []auditlog.Entry
}

// Ref names a credential. It finds none where any part that is set differs.
type Ref struct {
	OrganizationID string
	// ProjectID is the project it must belong to; empty is any.
	ProjectID string
	// Kinds are those it may have; empty is any.
	Kinds []Kind
	ID    string
}

// ListQuery asks for a page of a project's credentials.
type ListQuery struct {
	OrganizationID string
	ProjectID      string
	// Kinds are those asked for.
	Kinds []Kind
	// After is the number of the last one on the page before.
	After int64
	Limit int
}
