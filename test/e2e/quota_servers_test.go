package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// threeServers are on one database and one bucket; their organization has a plan.
func threeServers(t *testing.T, plan string) (all [3]*apptest.Running, b *bucket) {
	t.Helper()
	b = newBucket(t)
	site := apptest.NewOnPostgreSQL(t, slices.Concat(plans, b.flags())...)
	sites := [3]*apptest.Site{site}
	for i := range 2 {
		sites[1+i] = beside(t, site)
	}
	for i, s := range sites {
		all[i] = s.MustServe()
	}
	give(t, all[0], site.Setup.OrganizationID, plan)
	return all, b
}

// fill sends new chunks to a server until one is refused, and counts the others:
// a refusal may have come of a chunk that was on its way twice.
func fill(t *testing.T, r *apptest.Running) (taken int) {
	t.Helper()
	for (caller{r, r.Setup.ServerKey}).call(t, "POST", "/v1/replay", fullChunk("filling", taken)).status == http.StatusAccepted {
		taken++
	}
	return taken
}

// used demands that each server refuses a new chunk, and says that so many bytes
// are used.
func used(t *testing.T, all [3]*apptest.Running, bytes int) {
	t.Helper()
	for i, r := range all {
		caller{r, r.Setup.ServerKey}.refused(t, "quota_exceeded", "POST", "/v1/replay", fullChunk(fmt.Sprint("more", i), 0))
		if u := usageOf(t, owner(r), ""); u.Storage.Used != bytes {
			t.Errorf("server %d: %+v, want %d", i, u, bytes)
		}
	}
}

// TestFiftySendersOfChunksAtThreeServers share a quota: it is used up, and past it
// goes at most what the others have on their way when the last chunk is taken and
// what its own server is committing: one for each sender. Each chunk was sent to two servers at once, and
// to the third one afterwards: it counts once, and is free for ever.
func TestFiftySendersOfChunksAtThreeServers(t *testing.T) {
	t.Parallel()
	all, b := threeServers(t, "recordings")
	const senders, chunks = 50, 4
	var first, repeats, refused [senders / 2 * chunks]atomic.Int64
	together(senders, func(i int) {
		r := all[i%len(all)]
		for number := range chunks {
			at := i/2*chunks + number
			switch s := (caller{r, r.Setup.ServerKey}).call(t, "POST", "/v1/replay", fullChunk(fmt.Sprint("s", i/2), number)); {
			case s.status == http.StatusAccepted && s.body["duplicate"] == false:
				first[at].Add(1)
			case s.status == http.StatusAccepted:
				repeats[at].Add(1)
			case s.status == http.StatusTooManyRequests && s.code() == "quota_exceeded":
				refused[at].Add(1)
			default:
				t.Errorf("%d %v", s.status, s.body)
			}
		}
	})
	taken := 0
	for at := range first {
		f, d, n := first[at].Load(), repeats[at].Load(), refused[at].Load()
		taken += int(f)
		if f > 1 || f == 0 && d > 0 || f+d+n != 2 {
			t.Errorf("chunk %d was first, repeated and refused %d, %d, %d times", at, f, d, n)
		}
	}
	taken += fill(t, all[0])
	const limit = recordingsStorage / fullChunkBytes
	if taken < limit || taken > limit+senders {
		t.Errorf("%d chunks were taken of %d, and at most %d may have been on their way", taken, limit, senders)
	}
	used(t, all, taken*fullChunkBytes)
	for at := range first {
		if r := all[(at/chunks*2+2)%len(all)]; first[at].Load() == 1 {
			record(t, caller{r, r.Setup.ServerKey}, fullChunk(fmt.Sprint("s", at/chunks), at%chunks), "duplicate")
		}
	}
	used(t, all, taken*fullChunkBytes)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.objects) < taken {
		t.Errorf("%d objects of %d chunks", len(b.objects), taken)
	}
}

// TestQuotaAtTheBoundaryOfThreeServers: a server knows what the others have taken
// while it has a chunk of its own on its way, and cannot know what they have on
// theirs: each takes one more then. Repeats are free meanwhile, and afterwards
// everything is counted everywhere.
func TestQuotaAtTheBoundaryOfThreeServers(t *testing.T) {
	t.Parallel()
	all, b := threeServers(t, "kilobyte")
	at := func(i int) caller { return caller{all[i], all[i].Setup.ServerKey} }
	var sent sync.WaitGroup
	arrived, let := b.hold(1)
	sent.Go(func() { record(t, at(0), fullChunk("s", 0), "first") })
	<-arrived
	record(t, at(1), fullChunk("s", 1), "first")
	at(0).refused(t, "quota_exceeded", "POST", "/v1/replay", fullChunk("s", 2))
	record(t, at(0), fullChunk("s", 1), "duplicate")
	let()
	sent.Wait()
	used(t, all, 2*fullChunkBytes)

	give(t, all[0], all[0].Setup.OrganizationID, "two kilobytes")
	record(t, at(2), fullChunk("s", 2), "first")
	arrived, let = b.hold(len(all))
	for i := range all {
		sent.Go(func() { record(t, at(i), fullChunk(fmt.Sprint("last", i), 0), "first") })
		<-arrived
		at(i).refused(t, "quota_exceeded", "POST", "/v1/replay", fullChunk("another", i))
		record(t, at(i), fullChunk("s", 0), "duplicate")
	}
	let()
	sent.Wait()
	used(t, all, (3+len(all))*fullChunkBytes)
	for i := range all {
		for j := range all {
			record(t, at(i), fullChunk(fmt.Sprint("last", j), 0), "duplicate")
		}
	}
	used(t, all, (3+len(all))*fullChunkBytes)
}
