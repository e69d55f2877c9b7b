package flowstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/flow"
)

// executed is the version that is executed when one is asked for.
func (b *bench) executed(t *testing.T, version int64) int64 {
	t.Helper()
	v, err := b.service.Find(t.Context(), b.project, "f", version)
	if err != nil {
		t.Fatal(err)
	}
	if v.Slug != "f" || v.ProjectID != b.project || v.Program == nil || v.CreatedAt.IsZero() || len(v.Definition) == 0 {
		t.Errorf("%+v", v)
	}
	return v.Number
}

func TestFindAndPin(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		_, err := b.service.Find(t.Context(), b.project, "f", 0)
		refused(t, api.CodeFlowNotFound, err)
		b.must(t, "one", 1, true)
		b.must(t, "two", 2, true)
		if n := b.executed(t, 0); n != 2 {
			t.Errorf("the latest is %d", n)
		}
		for range 2 {
			if f, err := b.service.Pin(t.Context(), b.project, "f", 1); err != nil || f.Pinned != 1 || f.Latest != 2 {
				t.Errorf("%+v, %v", f, err)
			}
		}
		b.must(t, "three", 3, true) // what is published does not move the pin
		if a, c := b.executed(t, 0), b.executed(t, 3); a != 1 || c != 3 {
			t.Errorf("pinned to 1: %d, asked for 3: %d", a, c)
		}
		for _, version := range []int64{4, -1} {
			_, err := b.service.Find(t.Context(), b.project, "f", version)
			refused(t, api.CodeFlowNotFound, err)
			_, err = b.service.Get(t.Context(), b.project, "f", version)
			refused(t, api.CodeFlowNotFound, err)
		}
		_, err = b.service.Pin(t.Context(), b.project, "f", 4)
		refused(t, api.CodeFlowNotFound, err)
		_, err = b.service.Pin(t.Context(), b.project, "g", 1)
		refused(t, api.CodeFlowNotFound, err)
		if n := b.executed(t, 0); n != 1 {
			t.Errorf("a refused pin has moved it to %d", n)
		}
		if f, err := b.service.Pin(t.Context(), b.project, "f", 0); err != nil || f.Pinned != 0 || b.executed(t, 0) != 3 {
			t.Errorf("unpinned: %+v, %v", f, err)
		}
		_, err = b.service.Find(t.Context(), "01980000-0000-7000-8000-0000000000ff", "f", 0)
		refused(t, api.CodeFlowNotFound, err) // of another project
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		f := b.must(t, "one", 1, true)
		var since time.Time
		for i := range 2 {
			f, err := b.service.Archive(t.Context(), b.project, "f")
			if err != nil || f.ArchivedAt.IsZero() || (i > 0 && !f.ArchivedAt.Equal(since)) {
				t.Fatalf("%+v, %v", f, err)
			}
			since = f.ArchivedAt
		}
		for _, version := range []int64{0, 1} {
			_, err := b.service.Find(t.Context(), b.project, "f", version)
			if details := refused(t, api.CodeFlowNotFound, err); details["archived"] != true {
				t.Errorf("%v", details)
			}
		}
		for _, text := range []string{"one", "two"} {
			_, _, err := b.publish(t, "f", text)
			refused(t, api.CodeConflict, err)
		}
		if v, err := b.service.Load(t.Context(), f.ID, 1); err != nil || v.Number != 1 || v.Program == nil {
			t.Errorf("an execution that exists: %+v, %v", v, err)
		}
		if got, err := b.service.Get(t.Context(), b.project, "f", 0); err != nil || got.Latest != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		for range 2 {
			if f, err := b.service.Unarchive(t.Context(), b.project, "f"); err != nil || !f.ArchivedAt.IsZero() {
				t.Fatalf("%+v, %v", f, err)
			}
		}
		b.must(t, "two", 2, true)
		_, err := b.service.Archive(t.Context(), b.project, "g")
		refused(t, api.CodeFlowNotFound, err)
	})
}

// TestLists: flows are in the order of bytes on every engine, and pages hold
// each once while others are added.
func TestLists(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		slugs := []string{"a", "a-b", "a0", "a_b", "ab", "b"}
		for _, slug := range []string{"b", "ab", "a", "a_b", "a0", "a-b"} {
			if _, _, err := b.publish(t, slug, "one"); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for after := ""; ; {
			page, err := b.service.List(t.Context(), b.project, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, f := range page {
				if f.Shown.Number != 1 || f.Shown.CreatedAt.IsZero() || f.Shown.Definition != nil {
					t.Errorf("%+v", f)
				}
				got = append(got, f.Slug)
			}
			after = got[len(got)-1]
			if _, _, err := b.publish(t, "0", after); err != nil { // before all of them
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, slugs) {
			t.Errorf("%v", got)
		}
		var numbers []int64
		for before := int64(0); ; {
			_, page, err := b.service.Versions(t.Context(), b.project, "0", flow.VersionsParams{Before: before, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, v := range page {
				numbers = append(numbers, v.Number)
			}
			before = numbers[len(numbers)-1]
		}
		if !slices.Equal(numbers, []int64{3, 2, 1}) {
			t.Errorf("%v", numbers)
		}
		if _, _, err := b.service.Versions(t.Context(), b.project, "none", flow.VersionsParams{Limit: 2}); err == nil {
			t.Error("versions of nothing")
		}
	})
}
