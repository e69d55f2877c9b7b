package judgeserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestBalance: a balance that is off by the last digit, or that still holds
// something, is found out.
func TestBalance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		begin  string
		n      int
		ok     bool
	}{
		{200, `{"balances":{"main":{"posted":"95","held":"0"}}}`, "100", 2, true},
		{200, `{"balances":{"main":{"posted":"95.0","held":"0.00"}}}`, "100", 2, true},
		{200, `{"balances":{"main":{"posted":"97.5","held":"0"}}}`, "100", 2, false},
		{200, `{"balances":{"main":{"posted":"94.999999","held":"0"}}}`, "100", 2, false},
		{200, `{"balances":{"main":{"posted":"95","held":"2.5"}}}`, "100", 2, false},
		{200, `{"balances":{}}`, "100", 2, false},
		{200, `[]`, "100", 2, false},
		{404, `{}`, "0", 0, true},
		{404, `{}`, "100", 0, false},
		{500, `{}`, "0", 0, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body) //nolint:errcheck // the client sees it
		}))
		api := &caller{client: newClient(Options{}.withDefaults()), server: ActionPulse{URL: server.URL}}
		if err := api.balance(t.Context(), "ada", c.begin, "-2.5", c.n); (err == nil) != c.ok {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
		api.client.http.CloseIdleConnections()
		server.Close()
	}
}
