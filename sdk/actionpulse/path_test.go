package actionpulse_test

import (
	"net/http"
	"testing"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// TestPartsOfPaths: whatever a customer is called, a server that takes the path
// apart finds the same name, and nothing of it is taken for a query or another
// path.
func TestPartsOfPaths(t *testing.T) {
	t.Parallel()
	type names struct{ customer, hold string }
	got := make(chan names, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/customers/{customer}/holds/{hold}", func(w http.ResponseWriter, r *http.Request) {
		got <- names{r.PathValue("customer"), r.PathValue("hold")}
		says(200, something)(w, r)
	})
	s := play(t, mux.ServeHTTP)
	c := newClients(t, s.URL+"/")
	for _, name := range []string{
		"ada", "a/b", "a b", " ", "100%", "%2F", "a+b", "ключ", "🎉", "a?b=c", "a#b", "a;b", "{hold_id}", "...", ".a", "a:b@c", `"'\`, "../x",
	} {
		if _, err := c.Holds.Get(t.Context(), name, name); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if n := <-got; n.customer != name || n.hold != name {
			t.Errorf("%q has arrived as %q and %q", name, n.customer, n.hold)
		}
	}
	sent := len(s.requests())
	for _, name := range []string{"", ".", ".."} {
		if _, err := c.Holds.Get(t.Context(), "ada", name); asError(t, err).Attempts != 0 {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := c.Customers.TopUp(t.Context(), name, actionpulse.TopUp{}); asError(t, err).Attempts != 0 {
			t.Errorf("%q: %v", name, err)
		}
	}
	if len(s.requests()) != sent {
		t.Error("a request with an empty part of a path was sent")
	}
}

// TestServersAndKeys: what cannot be spoken to or sent is refused when the
// client is made, without repeating a secret.
func TestServersAndKeys(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"", "pulse.example", "ftp://pulse.example", "http://", "http://u:secret@pulse.example", "http://a?key=secret", "http://a#f", ":secret"} {
		if _, err := actionpulse.New(server, "k"); err == nil || holds(err, "secret") {
			t.Errorf("%q: %v", server, err)
		}
		if _, err := actionpulse.NewApp(server); err == nil {
			t.Errorf("%q is a server of an App", server)
		}
	}
	for _, key := range []string{"", "secret\n", "secret key", "secret\x7f"} {
		if _, err := actionpulse.New("http://127.0.0.1:1", key); err == nil || holds(err, "secret") {
			t.Errorf("%q: %v", key, err)
		}
	}
}
