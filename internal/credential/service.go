package credential

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
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
	// Announce tells other processes to forget what they have cached; nil when
	// there are none.
	Announce func(ctx context.Context) error
	// CacheSize limits the cached answers; 0 means DefaultCacheSize.
	CacheSize int
}

// Service makes credentials and recognises them.
type Service struct {
	store    Store
	clock    func() time.Time
	random   io.Reader
	ttl      time.Duration
	announce func(ctx context.Context) error
	cache    *cache
}

// NewService returns a Service.
func NewService(p Params) *Service {
	if p.TTL <= 0 {
		p.TTL = DefaultTTL
	}
	if p.CacheSize <= 0 {
		p.CacheSize = DefaultCacheSize
	}
	return &Service{
		store: p.Store, clock: p.Clock, random: p.Random, ttl: p.TTL, announce: p.Announce,
		cache: newCache(p.TTL, p.CacheSize),
	}
}

// Authenticate returns whom a secret speaks for. Faults: unauthenticated when
// it is empty, unknown, revoked, expired without being an access token, or its
// user has left the organization; token_expired for an access token past its
// time; payment_required when the organization is suspended, with the credential
// all the same; unavailable when the store fails. A secret seen within the TTL costs no query.
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
		return r.Credential, fault.New(api.CodePaymentRequired, "the organization is suspended")
	default:
		return r.Credential, nil
	}
}

func unauthenticated() error {
	return fault.New(api.CodeUnauthenticated, "the credential is missing, unknown or revoked")
}
