package id

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestNewIsVersion7(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1<<48-1).Draw(t, "ms")
		random := rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random")
		s, err := New(time.UnixMilli(ms), bytes.NewReader(random))
		if err != nil {
			t.Fatal(err)
		}
		u, err := uuid.Parse(s)
		if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 || u.String() != s {
			t.Fatalf("%s: %v, version %d", s, err, u.Version())
		}
		sec, nsec := u.Time().UnixTime()
		if got := time.Unix(sec, nsec).UnixMilli(); got != ms {
			t.Fatalf("%s holds %d, want %d", s, got, ms)
		}
		if !Valid(s) {
			t.Fatalf("%s is not valid", s)
		}
	})
}

func TestNewSortsByTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	last := ""
	for range 100 {
		s, err := New(at, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if s <= last {
			t.Fatalf("%s does not sort after %s", s, last)
		}
		last, at = s, at.Add(time.Millisecond)
	}
}

func TestNewReportsTheRandomSource(t *testing.T) {
	t.Parallel()
	if _, err := New(time.UnixMilli(0), bytes.NewReader(make([]byte, 9))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v, want ErrUnexpectedEOF", err)
	}
}

func TestValidRefuses(t *testing.T) {
	t.Parallel()
	const good = "0196a1b2-c3d4-7e5f-8a6b-0123456789ab"
	if !Valid(good) {
		t.Fatalf("%s must be valid", good)
	}
	for _, s := range []string{
		"", good[1:], good + "0", " " + good, good + "\n",
		"0196A1B2-c3d4-7e5f-8a6b-0123456789ab",
		"0196a1b2c3d4-7e5f-8a6b-0123456789abc",
		"0196a1b2-c3d4-7e5f-8a6b-0123456789\x00b",
		"0196a1b2-c3d4-7e5f-8a6b_0123456789ab",
		"{196a1b2-c3d4-7e5f-8a6b-0123456789a}",
	} {
		if Valid(s) {
			t.Errorf("%q must not be valid", s)
		}
	}
}
