package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
	"github.com/actionpulse/actionpulse/internal/sendfile"
	"github.com/actionpulse/actionpulse/retry"
)

// visit is one row of the file, as the test itself counts it.
type visit struct {
	user, event string
	at          time.Time
}

// visits makes a click stream: sessions of some users, with rows that are
// exact repeats of another row and yet events of their own, and times with two
// different offsets.
func visits(rows int) []visit {
	r := rand.New(rand.NewPCG(11, 11)) // the same file each time
	names := []string{"view", "view", "view", "add", "add", "purchase"}
	zones := []*time.Location{time.FixedZone("", 3600), time.FixedZone("", 7200)}
	start := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	out := make([]visit, 0, rows)
	for len(out) < rows {
		at := start.Add(time.Duration(r.IntN(60*24*3600)) * time.Second).In(zones[r.IntN(2)])
		out = append(out, visit{user: fmt.Sprintf("user_%03d", r.IntN(120)), event: names[r.IntN(len(names))], at: at})
		if r.IntN(40) == 0 {
			out = append(out, out[len(out)-1])
		}
	}
	return out[:rows]
}

func gzipped(t *testing.T, rows []visit) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	var text strings.Builder
	text.WriteString("case:concept:name,concept:name,time:timestamp,platform,note\n")
	for i, v := range rows {
		fmt.Fprintf(&text, "%s,%s,%s,%s,\n", v.user, v.event, v.at.Format("2006-01-02 15:04:05.000000-07:00"), []string{"web", "ios"}[i%2])
	}
	if _, err := w.Write([]byte(text.String())); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// funnel counts how many users did each step in order, the last at most a day
// after the first, by looking at every start.
func funnel(rows []visit, steps ...string) []int {
	users := map[string][]visit{}
	for _, v := range rows {
		users[v.user] = append(users[v.user], v)
	}
	counts := make([]int, len(steps))
	for _, list := range users {
		deepest := 0
		for _, first := range list {
			if first.event != steps[0] {
				continue
			}
			depth, at := 1, first.at
			for depth < len(steps) {
				next := time.Time{}
				for _, v := range list {
					if v.event == steps[depth] && v.at.After(at) && v.at.Sub(first.at) <= 24*time.Hour && (next.IsZero() || v.at.Before(next)) {
						next = v.at
					}
				}
				if next.IsZero() {
					break
				}
				depth, at = depth+1, next
			}
			deepest = max(deepest, depth)
		}
		for i := range deepest {
			counts[i]++
		}
	}
	return counts
}

// A file is sent through a network that loses, doubles and delays, to a server
// that is restarted on the way, and then sent again: what is stored is what an
// independent count of the file says.
func TestAFileThroughABrokenNetworkIsStoredOnce(t *testing.T) {
	file := visits(3000)
	content := gzipped(t, file)
	site := apptest.New(t)
	r := site.MustServe()
	proxy, err := faultproxy.Start(faultproxy.Options{
		Seed: 5, Upstream: strings.TrimPrefix(r.URL, "http://"),
		Faults: faultproxy.Faults{
			DropRequest: 0.1, DropAnswer: 0.15, Truncate: 0.05, Duplicate: 0.1, ServerError: 0.05, Unavailable: 0.05,
			Delay: 0.2, MaxDelay: 5 * time.Millisecond,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	var restart sync.Once
	send := func(url string, onSent func()) sendfile.Summary {
		t.Helper()
		zone := time.UTC
		sender := sendfile.NewSender(sendfile.SenderParams{
			URL: url + "/v1/track", Key: r.Setup.ServerKey, UserAgent: "test", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
			Historical: true, BatchSize: 60,
			Retry:  retry.Policy{MaxAttempts: 50, Delays: retry.Delays{First: time.Millisecond, Max: 20 * time.Millisecond}},
			Now:    time.Now,
			OnSent: func(sendfile.Summary) { onSent() },
		})
		source := sendfile.Source{Name: "visits.csv.gz", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
		feed := sendfile.Feed(t.Context(), []sendfile.Source{source}, sendfile.Options{
			Mapping: sendfile.Mapping{Event: "concept:name", User: "case:concept:name", TS: "time:timestamp", Location: zone},
		})
		if err := sender.Run(t.Context(), feed); err != nil {
			t.Fatal(err)
		}
		return sender.Summary()
	}
	sent := 0
	first := send(proxy.URL(), func() {
		if sent++; sent > 10 {
			restart.Do(func() {
				r.MustStop()
				r = site.MustServe()
				proxy.SetUpstream(strings.TrimPrefix(r.URL, "http://"))
			})
		}
	})
	if first.Accepted != len(file) || first.Rejected != 0 || first.Retries == 0 {
		t.Fatalf("got %+v", first)
	}
	if again := send(r.URL, func() {}); again.Duplicates != len(file) {
		t.Fatalf("got %+v", again)
	}

	const span = `"from":"2024-01-01T00:00:00Z","to":"2025-01-01T00:00:00Z"`
	want, users := map[string]float64{}, map[string]bool{}
	for _, v := range file {
		want[v.event]++
		users[v.user] = true
	}
	got := map[string]float64{}
	for _, it := range query(t, r, `{"type":"breakdown","by":"event","measure":"count",`+span+`}`)["items"].([]any) { //nolint:forcetypeassert // a panic says as much
		item := it.(map[string]any)                            //nolint:forcetypeassert // as above
		got[item["key"].(string)], _ = item["value"].(float64) //nolint:forcetypeassert // as above
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stored %v, the file has %v", got, want)
	}
	year := query(t, r, `{"type":"trend","interval":"year","measure":"persons",`+span+`}`)
	if s := fmt.Sprint(year["series"]); s != fmt.Sprintf("[map[event:<nil> points:[map[at:2024-01-01T00:00:00Z value:%d]]]]", len(users)) {
		t.Errorf("%d users, got %s", len(users), s)
	}
	steps := query(t, r, `{"type":"funnel","window":"24h","steps":[{"event":"view"},{"event":"add"},{"event":"purchase"}],`+span+`}`)["steps"]
	counts := funnel(file, "view", "add", "purchase")
	if s := fmt.Sprint(steps); s != fmt.Sprintf("[map[event:view persons:%d] map[event:add persons:%d] map[event:purchase persons:%d]]", counts[0], counts[1], counts[2]) {
		t.Errorf("counted %v, got %s", counts, s)
	}
	r.MustStop()
	if report := site.Verify(); !report.OK || report.Rows != int64(len(file)) {
		t.Errorf("got %+v", report)
	}
	t.Logf("%d rows, %d requests, %d retries, proxy %+v", len(file), first.Requests, first.Retries, proxy.Counts())
}
