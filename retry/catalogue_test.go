package retry_test

import (
	"strconv"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// TestTableKnowsTheCodes: each code that the server answers with is in the
// table, which says of an event what the code says of itself.
func TestTableKnowsTheCodes(t *testing.T) {
	t.Parallel()
	for _, s := range api.Catalogue {
		o := retry.Outcome{Kind: retry.Event, Status: s.Status, Code: string(s.Code)}
		silent := retry.Decide(o, noon)
		o.ShouldRetry = strconv.FormatBool(s.ShouldRetry)
		told := retry.Decide(o, noon)
		if silent.Action == retry.Unlisted || silent.Retry != told.Retry || told.Retry != s.ShouldRetry {
			t.Errorf("%d %s: %+v without the header, %+v with it, which is %v", s.Status, s.Code, silent, told, s.ShouldRetry)
		}
	}
}
