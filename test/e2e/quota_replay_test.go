package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// The storage of the plans "recordings" and "trials", and how much of it a chunk
// of fullChunk takes: exactly a fortieth.
const (
	recordingsStorage = 20_000
	fullChunkBytes    = 500
)

// fullChunk is a chunk whose events have fullChunkBytes.
func fullChunk(session string, number int) string {
	const empty = `[{"type":3,"timestamp":1790000000000,"data":{"text":""}}]`
	text := strings.Repeat("x", fullChunkBytes-len(empty))
	return chunk(session, number, strings.Replace(empty, `""`, `"`+text+`"`, 1))
}

// TestFiftySendersOfChunksShareAQuota: of one organization with two projects,
// exactly the chunks that the rule allows are taken; each was sent at once with
// itself, which costs nothing; and it is so for ever.
func TestFiftySendersOfChunksShareAQuota(t *testing.T) {
	t.Parallel()
	onBothEnginesWith(t, plans, func(t *testing.T, r *apptest.Running) {
		keys := []string{r.Setup.BrowserToken, keyOfASecondProject(t, r)}
		give(t, r, r.Setup.OrganizationID, "trials")
		var first, repeats, refused [100]atomic.Int64
		together(50, func(i int) {
			session := i / 2 // by two senders each
			c := caller{r, keys[session%2]}
			for number := range 4 {
				at := session*4 + number
				switch s := c.call(t, "POST", "/v1/replay", fullChunk(fmt.Sprint("s", session), number)); {
				case s.status == http.StatusAccepted && s.body["duplicate"] == false:
					first[at].Add(1)
				case s.status == http.StatusAccepted:
					repeats[at].Add(1)
				case s.status == http.StatusTooManyRequests && s.code() == "trial_quota_exceeded" && s.detail("resource") == "storage":
					refused[at].Add(1)
				default:
					t.Errorf("%d %v", s.status, s.body)
				}
			}
		})
		taken := 0
		for at := range first {
			got := [3]int64{first[at].Load(), repeats[at].Load(), refused[at].Load()}
			taken += int(got[0])
			if got != [3]int64{1, 1, 0} && got != [3]int64{0, 0, 2} {
				t.Errorf("chunk %d was first, repeated and refused %v times", at, got)
			}
		}
		if u := usageOf(t, owner(r), ""); taken != recordingsStorage/fullChunkBytes || u.Storage.Used != recordingsStorage {
			t.Errorf("%d chunks were taken, %+v", taken, u)
		}
		caller{r, r.Setup.ServerKey}.refused(t, "trial_quota_exceeded", "POST", "/v1/track", goodBatch)
		r.MustStop()
		again := r.MustServe()
		c := caller{again, keys[0]}
		refusal := c.refused(t, "trial_quota_exceeded", "POST", "/v1/replay", fullChunk("another", 0))
		if refusal.header.Get("Retry-After") != "" || refusal.header.Get("X-Should-Retry") != "false" || refusal.detail("limit") != float64(recordingsStorage) ||
			refusal.detail("resets_at") != usageOf(t, owner(again), "").ResetsAt {
			t.Errorf("%v %v", refusal.header, refusal.body)
		}
		for at := range first {
			if session := at / 4; first[at].Load() == 1 {
				record(t, caller{again, keys[session%2]}, fullChunk(fmt.Sprint("s", session), at%4), "duplicate")
			}
		}
		give(t, again, r.Setup.OrganizationID, "paid")
		record(t, c, fullChunk("another", 0), "first")
	})
}

// keyOfASecondProject makes a project of the same organization, and a server key
// of it.
func keyOfASecondProject(t *testing.T, r *apptest.Running) string {
	t.Helper()
	second := owner(r).must(t, 201, "POST", "/api/v1/projects", `{"name":"second"}`).text(t, "id")
	return owner(r).must(t, 201, "POST", "/api/v1/projects/"+second+"/ingest-keys", `{"name":"k","kind":"server"}`).text(t, "token")
}

// TestFiftySendersOfChunksAndEvents share what is left: one request goes past
// it, and everything after that is refused, of either kind.
func TestFiftySendersOfChunksAndEvents(t *testing.T) {
	t.Parallel()
	r := apptest.New(t, plans...).MustServe()
	give(t, r, r.Setup.OrganizationID, "recordings")
	key := caller{r, r.Setup.ServerKey}
	sent := func(i, n int) (path, body string) {
		if i%2 == 0 {
			return "/v1/replay", fullChunk(fmt.Sprint("s", i), n)
		}
		return "/v1/track", fmt.Sprintf(`{"events":[{"event_id":%q,"event":"e","user_id":"u","properties":{"text":%q}}]}`, uuid.NewString(), strings.Repeat("x", 400))
	}
	var taken [2]atomic.Int64
	together(50, func(i int) {
		for n := range 3 {
			path, body := sent(i, n)
			s := key.call(t, "POST", path, body)
			switch {
			case s.status == http.StatusAccepted:
				taken[i%2].Add(1)
			case s.status != http.StatusTooManyRequests || s.code() != "quota_exceeded":
				t.Errorf("%d %v", s.status, s.body)
			}
		}
	})
	u := usageOf(t, owner(r), "")
	chunks, events := int(taken[0].Load()), int(taken[1].Load())
	event := (u.Storage.Used - chunks*fullChunkBytes) / max(events, 1)
	if u.Events.Used != events || event < 400 || event > fullChunkBytes || u.Storage.Used != chunks*fullChunkBytes+events*event {
		t.Errorf("%d chunks and %d events of %d bytes were taken, %+v", chunks, events, event, u)
	}
	if u.Storage.Used < recordingsStorage || u.Storage.Used >= recordingsStorage+fullChunkBytes {
		t.Errorf("%d bytes were taken of %d", u.Storage.Used, recordingsStorage)
	}
	for i := range 2 {
		path, body := sent(i, 10)
		key.refused(t, "quota_exceeded", "POST", path, body)
	}
	stored := 0.0
	for _, one := range owner(r).must(t, 200, "GET", replays(r)+"?limit=50", "").items(t) {
		stored += one["chunk_count"].(float64) //nolint:forcetypeassert // a panic says as much
	}
	if int(stored) != chunks {
		t.Errorf("%v chunks are stored, %d were taken", stored, chunks)
	}
}
