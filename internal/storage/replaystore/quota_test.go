package replaystore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/replay"
)

type quotaFunc func(organization string, at time.Time, bytes int64) (commit func(), settle func(bool), err error)

func (f quotaFunc) ReserveReplay(_ context.Context, organization string, at time.Time, bytes int64) (commit func(), settle func(bool), err error) {
	return f(organization, at, bytes)
}

// testReservations: what a chunk has reserved is settled when its transaction
// has ended, with whether it was counted there, and once. Requests of one chunk
// that come at once reserve one after the other, so those that wait for the
// first find what it has stored, and reserve nothing.
func testReservations(t *testing.T, b *bench) {
	src := replay.Source{ProjectID: b.project(), OrganizationID: b.setup.OrganizationID}
	var mu sync.Mutex
	var settled []bool
	var began []bool
	open := 0
	reserves := quotaFunc(func(string, time.Time, int64) (func(), func(bool), error) {
		mu.Lock()
		defer mu.Unlock()
		open++
		begun := false
		return func() { begun = true }, func(counted bool) {
			mu.Lock()
			defer mu.Unlock()
			open--
			began, settled = append(began, begun), append(settled, counted)
		}, nil
	})
	add := func(change func(*replay.Params)) error {
		_, err := b.service(t, func(p *replay.Params) {
			p.Quota = reserves
			change(p)
		}).Add(context.Background(), src, []byte(body("s", 0, events("0"))))
		return err
	}
	mustFail(t, add(func(p *replay.Params) { p.Blobs = noBlobs{b.params.Blobs} }), api.CodeInternal)
	mustFail(t, add(func(p *replay.Params) { p.Store = noCommit{p.Store} }), api.CodeInternal)
	lost := func(int) (bool, bool) { return false, false }
	mustFail(t, add(func(p *replay.Params) { p.Store = &unsure{Store: p.Store, lands: lost} }), api.CodeUnavailable)
	if err := add(func(*replay.Params) {}); err != nil {
		t.Error(err)
	}
	if err := add(func(p *replay.Params) { p.Store = blind{p.Store} }); err != nil { // another server was first
		t.Error(err)
	}
	if diff := cmp.Diff([]bool{false, false, false, true, false}, settled); diff != "" || open != 0 {
		t.Error(diff, open)
	}
	if diff := cmp.Diff([]bool{false, true, true, true, true}, began); diff != "" {
		t.Error(diff)
	}
	settled = nil
	one := b.service(t, func(p *replay.Params) { p.Quota = reserves })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := one.Add(context.Background(), src, []byte(body("s", 1, events("1")))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff([]bool{true}, settled); diff != "" || open != 0 {
		t.Error(diff, open)
	}
	b.sweep(t)
}

// blind is a store that was looked at before a chunk was there.
type blind struct{ replay.Store }

func (blind) FindMark(context.Context, replay.ChunkRef) (m replay.Mark, there bool, err error) {
	return m, false, nil
}
