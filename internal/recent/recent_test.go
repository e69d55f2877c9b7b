package recent_test

import (
	"testing"

	"github.com/actionpulse/actionpulse/internal/recent"
)

// What was used lately stays, what was not goes, and nothing beyond the limit
// is kept.
func TestMap(t *testing.T) {
	t.Parallel()
	m := recent.New[int, int](200)
	for i := range 1000 {
		m.Put(i, -i, 1)
		if v, ok := m.Find(0); !ok || v != 0 {
			t.Fatalf("what is used all the time is forgotten after %d others", i)
		}
	}
	kept := 0
	for i := range 1000 {
		v, ok := m.Find(999 - i)
		if ok {
			kept++
		}
		if i < 98 && (!ok || v != i-999) {
			t.Errorf("the value before the last %d is %d, %v", i, v, ok)
		}
	}
	if kept > 200 {
		t.Errorf("%d values are kept", kept)
	}
}

// A value that is put again is not counted twice, and one that is too heavy is
// not remembered.
func TestWeight(t *testing.T) {
	t.Parallel()
	m := recent.New[string, int](10)
	m.Put("small", 0, 1)
	for i := range 100 {
		m.Put("again", i, 3)
	}
	m.Put("heavy", 1, 6)
	if _, ok := m.Find("heavy"); ok {
		t.Error("a value heavier than half of the limit is remembered")
	}
	if v, ok := m.Find("again"); !ok || v != 99 {
		t.Errorf("%d %v", v, ok)
	}
	if _, ok := m.Find("small"); !ok {
		t.Error("a value that was put again was counted twice")
	}
}
