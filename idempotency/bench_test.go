package idempotency_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
)

func BenchmarkParseKey(b *testing.B) {
	marker, draft := idempotency.ReleaseMarker(), idempotency.IETF(0)
	for name, tt := range map[string]struct {
		p   *idempotency.Policy
		key string
	}{
		"plain":  {&marker, "018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2"},
		"quoted": {&draft, `"018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2"`},
	} {
		h := http.Header{idempotency.Header: {tt.key}}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tt.p.ParseKey(h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPrint(b *testing.B) {
	small := []byte(`{"version":"1.4.0","ts":"2026-05-01T10:00:00Z","environment":"staging","commit":"0edc490","metadata":{"n":1.50}}`)
	large := []byte(`{"items":[` + strings.Repeat(`{"a":1.5,"b":"text","c":[1,2,3]},`, 2000) + `0]}`)
	for name, f := range map[string]idempotency.Fingerprint{"bytes": raw, "value": markers, "chosen": movements} {
		for size, body := range map[string][]byte{"small": small, "64KiB": large} {
			b.Run(name+"/"+size, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				r := &idempotency.Request{Body: body}
				for b.Loop() {
					f.Print(r)
				}
			})
		}
	}
}

// BenchmarkMiddleware is the leased form on SQLite: two transactions that are
// synced for a first time, one that changes nothing for a repeat.
func BenchmarkMiddleware(b *testing.B) {
	post := func(b *testing.B, h http.Handler, key string) {
		b.Helper()
		r := httptest.NewRequestWithContext(b.Context(), "POST", "/pay", strings.NewReader(`{"credit_type":"main","amount":"5"}`))
		r.Header.Set(idempotency.Header, key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Body.String())
		}
	}
	open := func(b *testing.B) http.Handler {
		b.Helper()
		return keyed(b, payments(), openStore(b), func(w http.ResponseWriter, _ *http.Request) { write(w, `{"ok":true}`) })
	}
	b.Run("first", func(b *testing.B) {
		h := open(b)
		for i := 0; b.Loop(); i++ {
			post(b, h, "first-"+strconv.Itoa(i))
		}
	})
	b.Run("repeat", func(b *testing.B) {
		h := open(b)
		post(b, h, "repeat")
		for b.Loop() {
			post(b, h, "repeat")
		}
	})
}
