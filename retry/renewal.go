package retry

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// codeTokenExpired is the code of the 401 after which a token is renewed.
	codeTokenExpired = "token_expired"
	// maxRenewals is how many expired tokens are remembered, by their hashes.
	maxRenewals = 64
	// renewTimeout bounds one call of Transport.Refresh.
	renewTimeout = time.Minute
)

// renewals know the tokens that have come in place of expired ones.
type renewals struct {
	mu sync.Mutex
	// known is in the order of last use.
	known []renewal
	// underWay are the calls that have not ended, by the hash of the token that
	// was rejected.
	underWay map[[sha256.Size]byte]*renewing
}

type renewal struct {
	rejected [sha256.Size]byte
	token    string
}

type renewing struct {
	done  chan struct{}
	token string
	err   error
}

// bearer returns the token of an Authorization header; empty if it holds none.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// current returns the token that has come in place of another, which is that
// one itself if none has.
func (r *renewals) current(token string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(token)
}

func (r *renewals) find(token string) string {
	hash := sha256.Sum256([]byte(token))
	i := slices.IndexFunc(r.known, func(k renewal) bool { return k.rejected == hash })
	if i < 0 {
		return token
	}
	found := r.known[i]
	r.known = append(slices.Delete(r.known, i, i+1), found)
	return found.token
}

// renew returns a token in place of one that was rejected: the one that has
// already come, or that of refresh, which is called once for all who ask for it
// at the same time. It returns the error of refresh, and the cause of ctx if
// that ends first; refresh then goes on for the others and for later requests,
// because what it spends cannot be spent twice.
func (r *renewals) renew(ctx context.Context, rejected string, refresh refreshFunc) (string, error) {
	call, token := r.begin(ctx, rejected, refresh)
	if call == nil {
		return token, nil
	}
	select {
	case <-call.done:
		return call.token, call.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

type refreshFunc = func(ctx context.Context, rejected string) (string, error)

// begin returns the call that is to be awaited, or the token if it is known.
func (r *renewals) begin(ctx context.Context, rejected string, refresh refreshFunc) (*renewing, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token := r.find(rejected); token != rejected {
		return nil, token
	}
	hash := sha256.Sum256([]byte(rejected))
	if call := r.underWay[hash]; call != nil {
		return call, ""
	}
	call := &renewing{done: make(chan struct{})}
	if r.underWay == nil {
		r.underWay = map[[sha256.Size]byte]*renewing{}
	}
	r.underWay[hash] = call
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
		defer cancel()
		call.token, call.err = refresh(ctx, rejected)
		r.end(hash, call)
		close(call.done)
	}()
	return call, ""
}

// end keeps what a call has brought. All tokens that the rejected one has come
// in place of are followed by the new one.
func (r *renewals) end(rejected [sha256.Size]byte, call *renewing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.underWay, rejected)
	if call.err != nil || call.token == "" || sha256.Sum256([]byte(call.token)) == rejected {
		return
	}
	for i, k := range r.known {
		if sha256.Sum256([]byte(k.token)) == rejected {
			r.known[i].token = call.token
		}
	}
	r.known = append(r.known, renewal{rejected, call.token})
	if len(r.known) > maxRenewals {
		r.known = slices.Delete(r.known, 0, 1)
	}
}
