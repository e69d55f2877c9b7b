package account

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

// TestOnlySoManyHashesAtOnce: with all slots taken nobody gets in, and whoever
// leaves has not failed.
func TestOnlySoManyHashesAtOnce(t *testing.T) {
	t.Parallel()
	w := &watch{}
	p := newPasswords(env{random: rand.Reader}, ServicesParams{Clock: w.clock, Hashes: 2})
	var releases []func()
	for range 2 {
		release, err := p.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	gone := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for range DefaultFreeFailures + 1 {
		_, err := p.check(ctx, attempt{email: "a@b", address: somewhere, password: "p"})
		if codeOf(err) != api.CodeUnavailable || !errors.Is(err, gone) {
			t.Fatalf("got %v, want unavailable", err)
		}
	}
	if _, err := p.hash(ctx, "p"); codeOf(err) != api.CodeUnavailable {
		t.Errorf("hash: got %v, want unavailable", err)
	}
	for _, release := range releases {
		release()
	}
	if right, err := p.check(t.Context(), attempt{email: "a@b", address: somewhere, password: "p"}); err != nil || right {
		t.Errorf("got %t, %v, want a failure that is looked at", right, err)
	}
}

// TestTheDecoyCostsWhatAHashDoes: else an unknown email could be told by the
// time that it takes.
func TestTheDecoyCostsWhatAHashDoes(t *testing.T) {
	t.Parallel()
	fresh, err := HashPassword("p", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cost := func(phc string) string { return phc[:len("$argon2id$v=19$m=19456,t=2,p=1$")] }
	if cost(fresh) != cost(decoyHash) || len(fresh) != len(decoyHash) {
		t.Errorf("the decoy is %s, a hash %s", decoyHash, fresh)
	}
	if right, err := VerifyPassword("", decoyHash); err != nil || right {
		t.Errorf("got %t, %v, want a hash that can be read and is no password's", right, err)
	}
}
