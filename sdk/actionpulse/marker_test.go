package actionpulse_test

import (
	"testing"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// TestDeployMarkersSwapped: a token in the place of the project's id never gets
// into a URL, and so into logs.
func TestDeployMarkersSwapped(t *testing.T) {
	t.Parallel()
	for _, project := range []string{"apc_secret", "", "shop"} {
		if _, err := actionpulse.NewDeployMarkers("http://127.0.0.1:1", "apc_token", project); err == nil {
			t.Errorf("%q is taken for a project's id", project)
		}
	}
}
