package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestInvitePage: the page runs its own script and nothing else, and holds
// nothing of the invitation.
func TestInvitePage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	response, err := http.Get(b.url + invitePath)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil || response.Body.Close() != nil {
		t.Fatal(err)
	}
	page := string(content)
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
	for tag, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		_, rest, _ := strings.Cut(page, "<"+tag+">")
		text, _, found := strings.Cut(rest, "</"+tag+">")
		if want := directive + " 'sha256-" + hashOf(text) + "'"; !found || !strings.Contains(response.Header.Get("Content-Security-Policy"), want) {
			t.Errorf("the policy does not let the page's %s be: %s", tag, response.Header.Get("Content-Security-Policy"))
		}
	}
	for _, elsewhere := range []string{"http://", "https://", "src=", "href="} {
		if strings.Contains(page, elsewhere) {
			t.Errorf("the page has %q", elsewhere)
		}
	}
}
