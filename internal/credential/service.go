package credential

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

const (
	// DefaultTTL is how long an answer of the store is used again.
	DefaultTTL = time.Second
	// DefaultCacheSize limits the answers kept, of each sort: keys that exist
	// and secrets that do not.
	DefaultCacheSize = 10_000
	// storeAgain is the Retry-After when the store fails.
	storeAgain = time.Second
)

// Params configures a Service.
type Params struct {
	Store Store
	// Clock gives the time; it should keep the monotonic reading, as time.Now
	// does, so that a step of the wall clock does not prolong what is cached.
	Clock func() time.Time
	// Random is where secrets and ids come from: crypto/rand.Reader.
	Random io.Reader
	// TTL is the longest time that a change made by another process goes
	// unnoticed; 0 means DefaultTTL. Changes made here show at once.
	TTL time.Duration
	// CacheSize limits the cached answers; 0 means DefaultCacheSize.
	CacheSize int
}

// Service makes credentials and recognises them.
type Service struct {
	store  Store
	clock  func() time.Time
	random io.Reader
	cache  *cache
}

// NewService returns a Service.
func NewService(p Params) *Service {
	if p.TTL <= 0 {
		p.TTL = DefaultTTL
	}
	if p.CacheSize <= 0 {
		p.CacheSize = DefaultCacheSize
	}
	return &Service{store: p.Store, clock: p.Clock, random: p.Random, cache: newCache(p.TTL, p.CacheSize)}
}

// Authenticate returns whom a secret speaks for. Faults: unauthenticated when
// it is empty, unknown, revoked, expired without being an access token, or its
// user has left the organization; token_expired for an access token past its
// time; payment_required when the organization is suspended; unavailable when
// the store fails. A secret seen within the TTL costs no query.
func (s *Service) Authenticate(ctx context.Context, secret string) (Credential, error) {
	if secret == "" || len(secret) > secretLimit {
		return Credential{}, unauthenticated()
	}
	hash := HashSecret(secret)
	now := s.clock()
	a, ok := s.cache.get(hash, now)
	if !ok {
		var err error
		if a, err = s.find(ctx, hash, now); err != nil {
			return Credential{}, err
		}
	}
	return a.judge(now)
}

// find asks the store and keeps the answer, unless something was changed while
// it was asked: the answer may be older than the change.
func (s *Service) find(ctx context.Context, hash Hash, now time.Time) (answer, error) {
	epoch := s.cache.epoch()
	r, found, err := s.store.FindCredential(ctx, hash)
	if err != nil {
		return answer{}, fault.Wrap(api.CodeUnavailable, fmt.Errorf("find a credential: %w", err),
			"the credential cannot be checked now").With("applied", false).After(storeAgain)
	}
	a := answer{found: found && subtle.ConstantTimeCompare(r.Hash[:], hash[:]) == 1}
	if a.found {
		a.record = r
	}
	s.cache.put(hash, a, now, epoch)
	return a, nil
}

// answer is what the store said about a hash.
type answer struct {
	found  bool
	record Record
}

func (a *answer) judge(now time.Time) (Credential, error) {
	r := &a.record
	expired := !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
	switch {
	case !a.found, !r.RevokedAt.IsZero(), r.Kind == Access && r.Role == "", r.Kind != Access && expired:
		return Credential{}, unauthenticated()
	case expired:
		return Credential{}, fault.New(api.CodeTokenExpired, "the access token has expired")
	case r.Suspended:
		return Credential{}, fault.New(api.CodePaymentRequired, "the organization is suspended")
	default:
		return r.Credential, nil
	}
}

func unauthenticated() error {
	return fault.New(api.CodeUnauthenticated, "the credential is missing, unknown or revoked")
}

// Create makes a credential and returns it with its secret, which cannot be
// had again. Faults: validation_failed, unavailable.
func (s *Service) Create(ctx context.Context, p CreateParams) (Record, string, error) {
	d, secret, err := NewDraft(p, s.clock(), s.random)
	if err != nil {
		return Record{}, "", err
	}
	r, err := s.save(ctx, d)
	if err != nil {
		return Record{}, "", err
	}
	return r, secret, nil
}

// ImportLegacy stores a key that another system has made, as kind Legacy
// whatever p says. The secret is any text of 1–512 bytes that a header can
// carry. Faults: validation_failed (also when any organization uses the secret
// already), unavailable.
func (s *Service) ImportLegacy(ctx context.Context, secret string, p CreateParams) (Record, error) {
	if secret == "" || len(secret) > secretLimit || !utf8.ValidString(secret) ||
		strings.TrimSpace(secret) != secret || strings.ContainsFunc(secret, unicode.IsControl) {
		return Record{}, fault.Field("secret",
			"a key has 1 to %d bytes, no control characters and no spaces around it", secretLimit)
	}
	p.Kind = Legacy
	d, err := newDraft(p, secret, s.clock(), s.random)
	if err != nil {
		return Record{}, err
	}
	return s.save(ctx, d)
}

func (s *Service) save(ctx context.Context, d Draft) (Record, error) {
	r, err := s.store.CreateCredential(ctx, d)
	s.cache.clear()
	if errors.Is(err, ErrTaken) {
		return Record{}, fault.Wrap(api.CodeValidationFailed, err, "the key is in use already").With("field", "secret")
	}
	if err != nil {
		return Record{}, fmt.Errorf("create a credential: %w", err)
	}
	return r, nil
}

// List returns at most limit credentials of an organization with numbers above
// after, in order of number, revoked ones included.
func (s *Service) List(ctx context.Context, organizationID string, after int64, limit int) ([]Record, error) {
	all, err := s.store.ListCredentials(ctx, organizationID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list credentials: %w", err)
	}
	return all, nil
}

// Revoke ends a credential: in this process at once, in others within the TTL.
// Revoking again changes nothing. Faults: not_found, also for a credential of
// another organization; unavailable.
func (s *Service) Revoke(ctx context.Context, organizationID, credentialID string) error {
	found := false
	if id.Valid(credentialID) {
		var err error
		found, err = s.store.RevokeCredential(ctx, organizationID, credentialID, s.clock())
		s.cache.clear()
		if err != nil {
			return fmt.Errorf("revoke a credential: %w", err)
		}
	}
	if !found {
		return fault.New(api.CodeNotFound, "there is no such credential")
	}
	return nil
}
