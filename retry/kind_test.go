package retry_test

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/actionpulse/actionpulse/retry"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method string
		key    []string
		kind   []retry.Kind
		want   retry.Kind
	}{
		{"GET", nil, nil, retry.Read},
		{"HEAD", []string{"k"}, nil, retry.Read},
		{"OPTIONS", nil, nil, retry.Read},
		{"POST", nil, nil, retry.Mutation},
		{"PUT", nil, nil, retry.Mutation},
		{"DELETE", nil, nil, retry.Mutation},
		{"POST", []string{""}, nil, retry.Mutation},
		{"POST", []string{"k"}, nil, retry.Keyed},
		{"POST", []string{"k"}, []retry.Kind{retry.Mutation}, retry.Mutation},
		{"POST", nil, []retry.Kind{retry.Event}, retry.Event},
		{"GET", nil, []retry.Kind{retry.Read, retry.Mutation}, retry.Mutation},
	} {
		ctx := t.Context()
		for _, k := range c.kind {
			ctx = retry.WithKind(ctx, k) //nolint:fatcontext // that one is within the other is what is tried
		}
		request, err := http.NewRequestWithContext(ctx, c.method, "http://example.test/", bytes.NewReader(nil))
		if err != nil {
			t.Fatal(err)
		}
		request.Header["Idempotency-Key"] = c.key
		if got := retry.KindOf(request); got != c.want {
			t.Errorf("%s %q %v: got %d, want %d", c.method, c.key, c.kind, got, c.want)
		}
	}
	if retry.Attempts(&http.Response{}) != 0 || retry.Attempts(nil) != 0 {
		t.Error("an answer from elsewhere has attempts")
	}
}

// TestTransportKind: the context of a request wins over the transport's own
// rule, which wins over the header.
func TestTransportKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for want, ctx := range map[int]context.Context{2: t.Context(), 1: retry.WithKind(t.Context(), retry.Mutation)} {
			b := play(reply{status: 500, code: "internal"}, reply{status: 200})
			transport := retry.Transport{Base: b, Policy: steady, Kind: func(*http.Request) retry.Kind { return retry.Event }}
			request, err := http.NewRequestWithContext(ctx, "POST", "http://example.test/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if g := do(&transport, request); g.err != nil || len(b.sent) != want {
				t.Errorf("%d attempts, want %d: %v", len(b.sent), want, g.err)
			}
		}
	})
}
