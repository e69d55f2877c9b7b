package account

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"runtime"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// decoyHash is verified against when there is no such user, so that an unknown
// email takes as long as a wrong password. It has the cost of a new hash; its
// password is not known.
const decoyHash = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// passwords hashes and verifies passwords: only so many at once, because each
// takes 19 MiB and a processor, and not for those who have failed too often.
type passwords struct {
	random   io.Reader
	attempts *attempts
	slots    chan struct{}
}

func newPasswords(e env, p ServicesParams) *passwords {
	n := p.Hashes
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return &passwords{random: e.random, attempts: newAttempts(p.Attempts, p.Clock), slots: make(chan struct{}, n)}
}

// attempt is one try at a password.
type attempt struct {
	email    string // in lower case
	address  netip.Addr
	password string
	hash     string // empty: there is no such user
}

// check reports whether a password is right. A failure is counted before the
// password is looked at, and uncounted if it was right or not looked at, so
// that attempts at once are not more than those in a row. Faults:
// rate_limited; unavailable when the caller leaves before it is its turn.
func (p *passwords) check(ctx context.Context, a attempt) (bool, error) {
	if err := p.attempts.begin(a.email, a.address); err != nil {
		return false, err
	}
	right, err := p.verify(ctx, a)
	switch {
	case err != nil:
		p.attempts.undo(a.email, a.address)
		return false, err
	case right:
		p.attempts.succeed(a.email, a.address)
	}
	return right, nil
}

func (p *passwords) verify(ctx context.Context, a attempt) (bool, error) {
	release, err := p.enter(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	hash := a.hash
	if hash == "" {
		hash = decoyHash
	}
	right, err := VerifyPassword(a.password, hash)
	if err != nil {
		return false, fmt.Errorf("verify a password: %w", err)
	}
	return right && a.hash != "", nil
}

// hash returns the hash of a new password. Fault: unavailable when the caller
// leaves before it is its turn.
func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	release, err := p.enter(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return HashPassword(password, p.random)
}

// enter waits for a slot and returns what gives it back.
func (p *passwords) enter(ctx context.Context) (release func(), err error) {
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(api.CodeUnavailable, context.Cause(ctx), "the password was not checked").With("applied", false)
	}
}
