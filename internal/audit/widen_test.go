package audit_test

import (
	"context"
	"testing"
)

// Under a short window an event may be stored twice; under a longer one both
// rows count. Only the newest claim of an identity is ever asked for.
func TestAWidenedWindowMayForgetAllButTheNewestClaim(t *testing.T) {
	b := setup(t, t.TempDir())
	defer b.close(t)
	ids := make([]byte, 100)
	for i := range ids {
		ids[i] = byte(i + 1)
	}
	for b.now = range int64(3) {
		b.now *= window + 1
		b.send(t, ids...)
		b.store(t, 1000)
	}
	b.now = 3 * (window + 1)
	b.send(t, 200)
	if n, err := b.stores.Rebuild(context.Background(), 100_000*window); err != nil || n != 301 {
		t.Fatalf("rebuilt %d, %v", n, err)
	}
	if r := b.verify(t); !r.OK || r.Claims != 101 || r.ExpectedClaims != 101 {
		t.Errorf("got %+v", r)
	}
}
