// Package account owns organizations, their members and invitations, users and
// their sessions, and projects; and the first of each that a new installation
// begins with. It decides who may manage an organization and its members; what
// else a role may do is httpapi's to say. Secrets are credential's to make.
//
// Invariants:
//   - a project's number is positive, given once and never again;
//   - what belongs to another organization is not told apart from what does
//     not exist;
//   - a password is kept only as an argon2id hash;
//   - an organization has an owner;
//   - a session has at most one refresh token that can be spent, and none once
//     a spent one has come again.
package account

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/retention"
)

// ErrExists is returned by Setup when there are accounts already.
var ErrExists = errors.New("there are accounts already")

// Organization is a tenant: nothing of one is visible to another.
type Organization struct {
	ID        string
	Name      string
	CreatedAt time.Time
	// SuspendedAt is zero while it is not suspended.
	SuspendedAt time.Time
	// Plan is the name of the plan that it has of its own; empty is the default
	// one.
	Plan string
}

// User is a person who can log in.
type User struct {
	ID string
	// Email is in lower case and unique.
	Email string
	// PasswordHash is in PHC string form, see HashPassword.
	PasswordHash string
	CreatedAt    time.Time
}

// Project is where events are sent to.
type Project struct {
	ID string
	// Number names the project in stored events.
	Number         uint32
	Name           string
	OrganizationID string
	// Retention is the project's own, which may leave it to the server.
	Retention retention.Days
	CreatedAt time.Time
}

// Store keeps the first accounts.
type Store interface {
	// CreateSetup stores everything of r in one transaction and returns the
	// project's number. It returns ErrExists, and stores nothing, when there
	// is any organization or user.
	CreateSetup(ctx context.Context, r SetupRecord) (uint32, error)
}

// SetupRecord is what Setup stores.
type SetupRecord struct {
	Organization Organization
	Owner        User
	Project      Project // Number is given by the store
	Credentials  []credential.Draft
	Entries      []auditlog.Entry
}

// Params configures a Service.
type Params struct {
	Store Store
	Clock func() time.Time
	// Random is where ids and secrets come from: crypto/rand.Reader.
	Random io.Reader
}

// Service makes the first accounts.
type Service struct {
	store  Store
	clock  func() time.Time
	random io.Reader
}

// NewService returns a Service.
func NewService(p Params) *Service {
	return &Service{store: p.Store, clock: p.Clock, random: p.Random}
}
