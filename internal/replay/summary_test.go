package replay

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var received = time.Date(2026, 5, 31, 10, 0, 0, 0, time.UTC)

func TestSummarize(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) int64 { return received.Add(d).UnixMilli() }
	for name, c := range map[string]struct {
		events []string
		want   Summary
	}{
		"nothing": {nil, Summary{StartedAt: received, EndedAt: received}},
		"pages": {
			[]string{
				fmt.Sprintf(`{"data":{"href":"/a","width":1},"timestamp":%d,"type":4}`, at(-time.Minute)),
				`{"type":4,"data":{"href":"/a"}}`, `{"type":4,"data":{"href":"/b"}}`, `{"type":4,"data":{"href":"/a"}}`,
				`{"type":4,"data":{"href":7}}`, `{"type":4}`, `{"type":2,"data":{"href":"/c"}}`, `{"type":"4","data":{"href":"/d"}}`,
			},
			Summary{StartedAt: received.Add(-time.Minute), EndedAt: received.Add(-time.Minute), Events: 8, Pages: 3},
		},
		"errors": {
			[]string{
				`{"type":6,"data":{"plugin":"rrweb/console@1","payload":{"level":"error","payload":["\"x\""]}}}`,
				`{"type":6,"data":{"plugin":"rrweb/console@1","payload":{"level":"warn"}}}`,
				`{"type":6,"data":{"plugin":"other","payload":{"level":"error"}}}`,
				`{"type":5,"data":{"tag":"error","payload":{}}}`, `{"type":5,"data":{"tag":"errors"}}`, `{"type":5,"data":"error"}`,
			},
			Summary{StartedAt: received, EndedAt: received, Events: 6, Errors: 2},
		},
		"clicks": {
			[]string{`{"type":3,"data":{"source":2,"type":2,"id":1}}`, `{"type":3,"data":{"source":2,"type":1}}`, `{"type":3,"data":{"source":1,"type":2}}`},
			Summary{StartedAt: received, EndedAt: received, Events: 3, Clicks: 1},
		},
		"times": {
			[]string{
				fmt.Sprintf(`{"timestamp":%d}`, at(-time.Second)), fmt.Sprintf(`{"timestamp":%d.75}`, at(-3*time.Second)),
				`{"timestamp":"5"}`, `{"timestamp":-1}`, `{"timestamp":1e300}`, `{"timestamp":1780221600}`,
			},
			Summary{StartedAt: received.Add(-3 * time.Second), EndedAt: received.Add(-time.Second), Events: 6},
		},
		"a clock that is wrong": {
			[]string{fmt.Sprintf(`{"timestamp":%d}`, at(-1000*time.Hour)), fmt.Sprintf(`{"timestamp":%d}`, at(time.Hour))},
			Summary{StartedAt: received.Add(-1000 * time.Hour), EndedAt: received.Add(time.Hour), Events: 2},
		},
	} {
		var s summing
		if err := s.read([]byte("[" + strings.Join(c.events, " ,") + "]")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, s.summary(received)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestDigestIsForEver: marks are older than the program that compares them.
func TestDigestIsForEver(t *testing.T) {
	t.Parallel()
	const want = "38554f5ca456eb74c6fc03c5039a428a4c9809c3d794be61ebf94a2076ee9493"
	for _, events := range []string{`[{"type":3,"x":1.5}]`, `[ {"x":15e-1, "t\u0079pe":3.0} ]`} {
		got, err := digestOf([]byte(events))
		if err != nil || hex.EncodeToString(got[:]) != want {
			t.Errorf("%s: %x, %v", events, got, err)
		}
	}
}
