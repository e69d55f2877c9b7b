// Package credential owns the keys and tokens that callers present: making
// them, recognising them, and saying whom they speak for. It never decides
// what a kind may call (httpapi does) and never keeps a secret: only its hash.
//
// Invariants:
//   - a secret is shown once, when it is made, and cannot be read again;
//   - the kind comes from the stored record, never from how a secret looks;
//   - a credential's number is given once and never again.
package credential

import "time"

// Kind says what a credential is for.
type Kind string

// The kinds. Browser, Server and Legacy keys send events; the kind is part of
// an event's identity.
const (
	Browser Kind = "browser"
	Server  Kind = "server"
	Legacy  Kind = "legacy"
	// Project keys do keyed work.
	Project Kind = "project"
	// CI tokens post deploy markers.
	CI Kind = "ci"
	// Access tokens speak for a user.
	Access Kind = "access"
)

// Ingest reports whether credentials of this kind send events.
func (k Kind) Ingest() bool { return k == Browser || k == Server || k == Legacy }

// Credential is what a valid secret stands for. Its slices and pointers are
// shared with other requests and must not be changed.
type Credential struct {
	ID string
	// Number is positive, unique in the store and never given twice. It names
	// the credential in stored events and metrics.
	Number         int64
	Kind           Kind
	Name           string
	OrganizationID string
	// Plan is the organization's own plan; empty is the default one.
	Plan string
	// ProjectID and Project name the one project of a key; they are empty and
	// 0 for access tokens.
	ProjectID string
	Project   uint32
	// UserID and Role are set for access tokens only: owner, admin, member or
	// viewer.
	UserID string
	Role   string
	// SessionID is set for access tokens that a login or a refresh has made.
	SessionID string
	// Origins are the web origins a browser token may be used from, as a
	// browser writes them; empty means any.
	Origins []string
	// Rate is requests a second, Burst how many at once; nil means the default,
	// a Rate of 0 no limit.
	Rate  *float64
	Burst *int
}

// Record is a credential as it is stored.
type Record struct {
	Credential

	Hash Hash
	// Prefix and LastFour are what may be shown of the secret.
	Prefix   string
	LastFour string
	// CreatedAt, ExpiresAt and RevokedAt are kept to the microsecond; the last
	// two are zero when there is no such time. RevokedAt is the session's if
	// that was revoked and the credential itself was not.
	CreatedAt time.Time
	ExpiresAt time.Time
	RevokedAt time.Time
	// Suspended says that the organization is.
	Suspended bool
}
