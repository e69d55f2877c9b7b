package retry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/retry"
)

// TestErrorsHideTheCredential: an error of Base that quotes the credential is
// the cause of what is returned, and its text without the credential.
func TestErrorsHideTheCredential(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"Bearer top-secret", "top-secret"} {
		quoted := fmt.Errorf("malformed HTTP response %q", header)
		var told string
		tr := &retry.Transport{Base: &base{replies: []reply{{err: quoted}}}, Policy: retry.Policy{
			MaxAttempts: 2, Delays: quick.Delays, OnRetry: func(r retry.Retry) { told = r.Outcome.Err.Error() },
		}}
		request := newRequest(t, retry.Keyed, strings.NewReader("content"))
		request.Header.Set("Authorization", header)
		_, err := tr.RoundTrip(request) //nolint:bodyclose // there is no answer
		if !errors.Is(err, quoted) || strings.Contains(err.Error()+told, "secret") || !strings.Contains(told, "[credential]") {
			t.Errorf("got %v, and told of %s", err, told)
		}
	}
}
