package replaystore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/replay"
)

// testChunks is the case from the field: numbers out of order, one again with
// the same bytes, one again with others, one that never comes.
func testChunks(t *testing.T, b *bench) {
	for _, n := range []int{0, 2, 1} {
		b.want(t, b.project(), body("s", n, events(fmt.Sprint(n))), first)
	}
	b.want(t, b.project(), body("s", 1, events("1")), duplicate)
	b.want(t, b.project(), body("s", 0, events("other")), conflict)
	r, err := b.Get(t.Context(), b.project(), "s")
	if err != nil || r.GapCount != 0 || len(r.Gaps) != 0 || r.Chunks == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	b.want(t, b.project(), body("s", 4, events("4")), first)
	r, err = b.Get(t.Context(), b.project(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int64
	for _, c := range r.Chunks {
		numbers = append(numbers, c.Chunk)
		if got, want := b.read(t, b.project(), "s", c.Chunk), events(fmt.Sprint(c.Chunk)); got != want || c.Bytes != int64(len(want)) {
			t.Errorf("chunk %d: %s, %d bytes", c.Chunk, got, c.Bytes)
		}
	}
	if diff := cmp.Diff([]int64{0, 1, 2, 4}, numbers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{3}, r.Gaps); diff != "" || r.GapCount != 1 {
		t.Error(diff, r.GapCount)
	}
	if b.seen.all != 6 || b.seen.duplicates != 2 || b.seen.conflicted != 1 {
		t.Errorf("%d, %d, %d were counted", b.seen.all, b.seen.duplicates, b.seen.conflicted)
	}
	b.sweep(t)
}

// testEightAtOnce: of eight bodies for one chunk, two for each of four servers,
// one is first, and nothing of the others is left.
func testEightAtOnce(t *testing.T, b *bench) {
	servers := make([]*replay.Service, 4)
	for i := range servers {
		servers[i] = b.service(t, func(*replay.Params) {})
	}
	for round := range 5 {
		receipts := make([]replay.Receipt, 8)
		var all sync.WaitGroup
		for i := range receipts {
			all.Go(func() {
				src := replay.Source{ProjectID: b.project()}
				var err error
				if receipts[i], err = servers[i%4].Add(context.Background(), src, []byte(body("s", round, events(fmt.Sprint(i/2))))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		winner := slices.Index(receipts, first)
		if winner < 0 {
			t.Fatalf("nobody was first: %v", receipts)
		}
		for i, r := range receipts {
			want := replay.Receipt{Duplicate: i != winner, Conflict: i/2 != winner/2}
			if r != want {
				t.Errorf("%d: %+v, want %+v", i, r, want)
			}
		}
		if got, want := b.read(t, b.project(), "s", int64(round)), events(fmt.Sprint(winner/2)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	b.sweep(t)
	if n := b.count(t, "replay_chunks"); n != 5 {
		t.Errorf("%d chunks", n)
	}
}

// testSpelling: what says the same is no conflict, and what differs in value is
// one; a chunk is given back as it was spelt first.
func testSpelling(t *testing.T, b *bench) {
	sent := "[ {\"type\":3,\"data\":{\"x\":1.50,\"y\":\"\\u00e9\"}} ,\n{} ]"
	b.want(t, b.project(), `{"chunk":7,"session_id":"s","events":`+sent+`}`, first)
	for events, want := range map[string]replay.Receipt{
		`[{"data":{"y":"é","x":15e-1},"type":3.0},{}]`: duplicate,
		sent: duplicate,
		`[{"type":3,"data":{"x":1.5000000000000000001,"y":"é"}},{}]`: conflict,
		`[{},{"type":3,"data":{"x":1.5,"y":"é"}}]`:                   conflict,
		`[{"type":3,"data":{"x":"1.5","y":"é"}},{}]`:                 conflict,
		`[{"type":3,"data":{"x":1.5,"y":"é","z":null}},{}]`:          conflict,
		`[]`: conflict,
	} {
		b.want(t, b.project(), body("s", 7, events, `"anon_id":"another","future":{"x":[1]}`), want)
	}
	if got := b.read(t, b.project(), "s", 7); got != sent {
		t.Errorf("%q, want %q", got, sent)
	}
}

// testIdentity: a chunk is known by project, session and number, and by nothing
// that looks alike.
func testIdentity(t *testing.T, b *bench) {
	other := b.newProject(t)
	sessions := []string{
		"s", "S", "s ", "s/1", "s\x00", "/", "..", "a%2Fb", "é", "e\u0301", strings.Repeat("\U0001F600", 200), "s\t1", `"`, `\`,
	}
	for _, project := range []string{b.project(), other} {
		for i, s := range sessions {
			for _, n := range []int{replay.MaxChunk} {
				text := events(fmt.Sprint(project, i, n))
				quoted := strings.NewReplacer("\\x00", "\\u0000").Replace(body(s, n, text))
				b.want(t, project, quoted, first)
				b.want(t, project, quoted, duplicate)
			}
		}
	}
	for i, s := range sessions {
		if err := b.Delete(t.Context(), replay.Place{OrganizationID: b.setup.OrganizationID, ProjectID: other, SessionID: s}); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if got, want := b.read(t, b.project(), s, replay.MaxChunk), events(fmt.Sprint(b.project(), i, replay.MaxChunk)); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	b.sweep(t)
}

// testNothingIsTakenWhenItIsRefused: after a refusal the same chunk is new.
func testNothingIsTakenWhenItIsRefused(t *testing.T, b *bench) {
	src := replay.Source{ProjectID: b.project(), OrganizationID: b.setup.OrganizationID}
	b.want(t, b.project(), body("s", 0, events("0")), first)
	text := []byte(body("s", 1, events("1")))

	b.full = fault.New(api.CodeInternal, "full")
	_, err := b.Add(t.Context(), src, text)
	mustFail(t, err, api.CodeInternal)
	b.want(t, b.project(), body("s", 0, events("0")), duplicate) // writes nothing
	b.full = nil

	asked := 0
	strict := b.service(t, func(p *replay.Params) {
		p.Quota = quotaFunc(func(organization string, at time.Time, bytes int64) (func(), func(bool), error) {
			asked++
			if organization != b.setup.OrganizationID || !at.Equal(b.clock()) || bytes != int64(len(events("1"))) {
				t.Errorf("asked about %d bytes of %s at %v", bytes, organization, at)
			}
			return nil, nil, fault.New(api.CodeQuotaExceeded, "enough")
		})
	})
	_, err = strict.Add(t.Context(), src, text)
	mustFail(t, err, api.CodeQuotaExceeded)
	if r, err := strict.Add(t.Context(), src, []byte(body("s", 0, events("0")))); err != nil || r != duplicate || asked != 1 {
		t.Errorf("%+v, %v, asked %d times", r, err, asked)
	}

	broken := b.service(t, func(p *replay.Params) { p.Blobs = noBlobs{p.Blobs} })
	_, err = broken.Add(t.Context(), src, text)
	mustFail(t, err, api.CodeInternal)

	gone := b.service(t, func(p *replay.Params) { p.Store = noCommit{p.Store} })
	_, err = gone.Add(t.Context(), src, text)
	mustFail(t, err, api.CodeInternal)

	if marks, chunks := b.count(t, "replay_marks"), b.count(t, "replay_chunks"); marks != 1 || chunks != 1 {
		t.Errorf("%d marks, %d chunks", marks, chunks)
	}
	b.want(t, b.project(), string(text), first)
	b.sweep(t)
}

type noBlobs struct{ replay.Blobs }

func (noBlobs) Put(context.Context, string, []byte) error {
	return errors.New("no space left on device")
}

type noCommit struct{ replay.Store }

func (noCommit) Commit(context.Context, []*replay.Entry) error { return errors.New("no such table") }

// unsure is a store whose COMMITs are not confirmed as planned.
type unsure struct {
	replay.Store

	mu    sync.Mutex
	n     int
	lands func(n int) (lands, heard bool)
}

func (u *unsure) Commit(ctx context.Context, entries []*replay.Entry) error {
	u.mu.Lock()
	u.n++
	lands, heard := u.lands(u.n)
	u.mu.Unlock()
	if lands {
		if err := u.Store.Commit(ctx, entries); err != nil || heard {
			return err
		}
		for _, e := range entries { // the verdicts were not heard either
			e.Outcome = replay.Outcome{}
		}
	}
	return fault.New(api.CodeUnavailable, "not confirmed").With("applied", "unknown")
}

// testLostCommits: whoever was first hears so, whether or not the COMMIT that
// was not confirmed has landed; if it stays unknown, that is said.
func testLostCommits(t *testing.T, b *bench) {
	src := replay.Source{ProjectID: b.project()}
	for i, lands := range []func(n int) (bool, bool){
		func(n int) (bool, bool) { return true, n != 1 },
		func(n int) (bool, bool) { return n != 1, n != 1 },
		func(n int) (bool, bool) { return n == 2, n == 3 }, // lands unheard, then is never heard of again
	} {
		s := b.service(t, func(p *replay.Params) { p.Store = &unsure{Store: p.Store, lands: lands} })
		text := body("s", i, events(fmt.Sprint(i)))
		r, err := s.Add(t.Context(), src, []byte(text))
		switch i {
		case 2:
			mustFail(t, err, api.CodeUnavailable)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details["applied"] != "unknown" {
				t.Errorf("%v", err)
			}
		default:
			if err != nil || r != first {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		}
		b.want(t, b.project(), text, duplicate)
		if n := b.count(t, fmt.Sprint("replay_chunks WHERE chunk = ", i)); n != 1 {
			t.Errorf("%d: %d chunks", i, n)
		}
	}
	b.sweep(t)
}

// testUsage: a chunk counts once, in the month of its receipt; what goes is not
// counted off.
func testUsage(t *testing.T, b *bench) {
	one := body("s", 0, events("0"))
	b.want(t, b.project(), one, first)
	b.pass(14 * time.Hour) // the first of June
	b.want(t, b.project(), one, duplicate)
	b.want(t, b.project(), body("s", 0, events("other")), conflict)
	for n := 1; n < 4; n++ {
		b.want(t, b.project(), body("s", n, `[]`), first)
	}
	if n := b.expire(t, -time.Hour, 100); n != 4 {
		t.Errorf("%d are deleted", n)
	}
	for text, want := range map[string]int{
		fmt.Sprintf("replay_usage WHERE month = 202505 AND chunks = 1 AND bytes = %d", len(events("0"))): 1,
		"replay_usage WHERE month = 202506 AND chunks = 3 AND bytes = 6":                                 1,
		"replay_usage": 2,
	} {
		if n := b.count(t, text); n != want {
			t.Errorf("%s: %d, want %d", text, n, want)
		}
	}
}
