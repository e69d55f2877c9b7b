package account

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/retention"
)

// ErrStale is returned when the facts that a change was prepared for have
// changed: it is prepared again.
var ErrStale = errors.New("the facts have changed meanwhile")

// ServicesStore keeps what the services of this package need.
type ServicesStore interface {
	SessionStore
	OrganizationStore
	MemberStore
	InvitationStore
	ProjectStore
	SweepStore
}

// ServicesParams configures Services.
type ServicesParams struct {
	Store ServicesStore
	Clock func() time.Time
	// Random is where ids and secrets come from: crypto/rand.Reader.
	Random io.Reader
	// AfterChange is called with the outcome of each change to what
	// credentials speak for; see credential.Service.AfterChange.
	AfterChange func(ctx context.Context, err error) error
	// Attempts limits failed logins.
	Attempts AttemptParams
	// Retention is what projects may ask for.
	Retention retention.Rules
	// Hashes is how many passwords are hashed at once; 0 means one for each
	// processor.
	Hashes int
}

// Services are what users and operators do with accounts.
type Services struct {
	Sessions      *Sessions
	Organizations *Organizations
	Members       *Members
	Invitations   *Invitations
	Projects      *Projects
	Sweeper       *Sweeper
}

// NewServices returns the services, which share one limit on attempts.
func NewServices(p ServicesParams) Services {
	e := env{clock: p.Clock, random: p.Random, afterChange: p.AfterChange}
	passwords := newPasswords(e, p)
	return Services{
		Sessions:      &Sessions{env: e, store: p.Store, passwords: passwords},
		Organizations: &Organizations{env: e, store: p.Store},
		Members:       &Members{env: e, store: p.Store},
		Invitations:   &Invitations{env: e, store: p.Store, passwords: passwords},
		Projects:      &Projects{env: e, store: p.Store, retention: p.Retention},
		Sweeper:       &Sweeper{env: e, store: p.Store},
	}
}

// env is what all services share.
type env struct {
	clock       func() time.Time
	random      io.Reader
	afterChange func(ctx context.Context, err error) error
}

// entry completes an entry of the audit log.
func (e env) entry(entry auditlog.Entry) (auditlog.Entry, error) {
	return auditlog.Source{Clock: e.clock, Random: e.random}.New(entry)
}
