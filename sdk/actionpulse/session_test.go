package actionpulse_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// issuer is a server whose access tokens apt_0, apt_1, … have each expired as
// soon as the next one is there, and whose refresh tokens r0, r1, … can be
// spent once.
type issuer struct {
	mu      sync.Mutex
	current int
	// spent counts how often each refresh token came.
	spent map[string]int
	// refuse, if set, answers in place of a refresh.
	refuse http.HandlerFunc
	// rejected is closed when as many requests as wanted were rejected; each
	// waits for it, so that all of them ask for new tokens at once.
	rejected sync.WaitGroup
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/refresh"):
		i.refresh(w, r)
	case r.Header.Get("Authorization") == fmt.Sprintf("Bearer apt_%d", i.current):
		says(200, something)(w, r)
	case r.Header.Get("Authorization") == "":
		refuses(401, "unauthenticated", "")(w, r)
	default:
		i.mu.Unlock()
		i.rejected.Done()
		i.rejected.Wait()
		i.mu.Lock()
		refuses(401, "token_expired", "")(w, r)
	}
}

// refresh is called with mu held, after the body was read by the script.
func (i *issuer) refresh(w http.ResponseWriter, r *http.Request) {
	i.spent[fmt.Sprintf("r%d", i.current)]++
	if r.Header.Get("Authorization") != "" {
		says(500, "a refresh carries no access token")(w, r)
		return
	}
	if i.refuse != nil {
		i.refuse(w, r)
		return
	}
	i.current++
	says(200, i.tokens())(w, r)
}

func (i *issuer) tokens() string {
	return fmt.Sprintf(`{"access_token":"apt_%d","refresh_token":"r%d","expires_in":900}`, i.current, i.current)
}

func newIssuer() *issuer { return &issuer{current: 1, spent: map[string]int{}} }

var stale = api.Tokens{AccessToken: "apt_0", RefreshToken: "r1"}

// TestRefreshIsShared: however many requests meet an expired token at once,
// the refresh token is spent once, its keeper is told once and before the new
// token is used, and every request succeeds.
func TestRefreshIsShared(t *testing.T) {
	t.Parallel()
	const many = 20
	i := newIssuer()
	i.rejected.Add(many)
	s := play(t, i.serve)
	var kept []api.Tokens
	app, err := actionpulse.NewApp(s.URL, actionpulse.WithTokens(stale), actionpulse.OnTokens(func(tokens api.Tokens) {
		kept = append(kept, tokens)
	}))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if _, err := app.Projects.Get(t.Context(), one); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if i.spent["r1"] != 1 || len(i.spent) != 1 {
		t.Errorf("spent %v", i.spent)
	}
	if len(kept) != 1 || kept[0].AccessToken != "apt_2" || kept[0].RefreshToken != "r2" || app.Tokens() != kept[0] {
		t.Errorf("kept %+v, has %+v", kept, app.Tokens())
	}
	for _, r := range s.requests() {
		if strings.HasSuffix(r.path, "/refresh") && r.body != `{"refresh_token":"r1"}` {
			t.Errorf("a refresh has sent %s", r.body)
		}
	}
}

// TestRefreshIsNoAttempt: even a client that makes one attempt goes on after a
// token has expired.
func TestRefreshIsNoAttempt(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	i.rejected.Add(1)
	app, err := actionpulse.NewApp(play(t, i.serve).URL, actionpulse.WithTokens(stale))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.Markers.Create(t.Context(), one, marker); err != nil {
		t.Fatal(err)
	}
}

// TestRefreshLost: a refresh token whose answer was lost may be spent. It is
// not sent again, the session has ended, and each error says so.
func TestRefreshLost(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]http.HandlerFunc{
		"lost": hangsUp, "cut short": cutsShort, "500": refuses(500, "internal", ""), "proxy": says(502, ""),
		"refused": refuses(401, "unauthenticated", ""), "503": refuses(503, "unavailable", `,"applied":"unknown"`),
	} {
		i := newIssuer()
		i.refuse = refuse
		i.rejected.Add(1)
		var kept []api.Tokens
		c := hurried(t, play(t, i.serve).URL, actionpulse.OnTokens(func(tokens api.Tokens) { kept = append(kept, tokens) }))
		for range 3 {
			_, err := c.app.Projects.Get(t.Context(), one)
			if !errors.Is(err, actionpulse.ErrSessionEnded) || asError(t, err).Status != 401 {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := c.app.Refresh(t.Context(), "")
		if e := asError(t, err); !errors.Is(err, actionpulse.ErrSessionEnded) || e.Operation != "refresh" || e.Applied != actionpulse.AppliedNo {
			t.Errorf("%s: %v", name, err)
		}
		if i.spent["r1"] != 1 || len(kept) != 1 || kept[0] != (api.Tokens{}) {
			t.Errorf("%s: spent %v, kept %+v", name, i.spent, kept)
		}
	}
}

// TestRefreshLater: a refresh token that was certainly not spent is kept, and
// serves when the server is well again.
func TestRefreshLater(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	i.refuse = refuses(503, "unavailable", `,"applied":false`)
	i.rejected.Add(2)
	c := hurried(t, play(t, i.serve).URL)
	go i.rejected.Done()
	if _, err := c.app.Projects.Get(t.Context(), one); err == nil || errors.Is(err, actionpulse.ErrSessionEnded) {
		t.Errorf("%v", err)
	}
	i.mu.Lock()
	i.refuse = nil
	i.mu.Unlock()
	i.rejected.Add(1)
	if _, err := c.app.Projects.Get(t.Context(), one); err != nil {
		t.Error(err)
	}
}

// TestRefreshCameBefore: a request that was on its way while the tokens were
// replaced goes on with the new ones; nothing is spent for it.
func TestRefreshCameBefore(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	i.rejected.Add(1)
	arrived, refreshed := make(chan struct{}), make(chan struct{})
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer apt_0" {
			close(arrived)
			<-refreshed
		}
		i.serve(w, r)
	})
	app, err := actionpulse.NewApp(s.URL, actionpulse.WithTokens(stale))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() { got <- of(app.Projects.Get(t.Context(), one)) }()
	<-arrived
	if _, err := app.Refresh(t.Context(), ""); err != nil {
		t.Error(err)
	}
	close(refreshed)
	if err := <-got; err != nil {
		t.Error(err)
	}
	if len(i.spent) != 1 || i.spent["r1"] != 1 || app.Tokens().AccessToken != "apt_2" {
		t.Errorf("spent %v, has %s", i.spent, app.Tokens().AccessToken)
	}
}

func TestLoginAndLogout(t *testing.T) {
	t.Parallel()
	i := newIssuer()
	s := play(t, says(200, i.tokens()), i.serve, says(204, ""), i.serve)
	var kept []api.Tokens
	app, err := actionpulse.NewApp(s.URL, actionpulse.OnTokens(func(tokens api.Tokens) { kept = append(kept, tokens) }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.Login(t.Context(), api.Login{Email: "a@localhost", Password: "p"}); err != nil {
		t.Fatal(err)
	}
	if _, err := app.Projects.Get(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := app.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := app.Projects.Get(t.Context(), one); !errors.Is(err, actionpulse.ErrSessionEnded) {
		t.Errorf("after the logout: %v", err)
	}
	if got := s.requests(); len(got) != 4 || got[0].header.Get("Authorization") != "" || got[2].header.Get("Authorization") != "Bearer apt_1" {
		t.Errorf("%+v", got)
	}
	if len(kept) != 2 || kept[0].AccessToken != "apt_1" || kept[1] != (api.Tokens{}) {
		t.Errorf("kept %+v", kept)
	}
}
