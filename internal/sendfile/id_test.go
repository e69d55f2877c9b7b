package sendfile_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/sendfile"
)

// idsOf returns the ids of an input's lines.
func idsOf(t interface{ Fatal(args ...any) }, in io.Reader, o sendfile.Options) []string {
	items, err := readAll(in, o)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 0, len(items))
	for _, item := range items {
		ids = append(ids, item.EventID)
	}
	return ids
}

// TestIDsOfKnownContent pins the derivation: ids that change with a release
// would double every file that is sent again.
func TestIDsOfKnownContent(t *testing.T) {
	t.Parallel()
	got := idsOf(t, strings.NewReader("event,user_id\na,u\na,u\n"), sendfile.Options{})
	want := []string{"d9d79144-3f9b-8c16-8fb3-fb72d2ac92a9", "9fb13510-1893-8be8-9122-86730f75e8c9"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("CSV ids %q, want %q", got, want)
	}
	got = idsOf(t, strings.NewReader("{\"event\":\"a\"}\n"), sendfile.Options{})
	if got[0] != "d2026ca1-af3b-888f-ba30-7403543858ff" {
		t.Errorf("JSON line id %q", got[0])
	}
}

// TestIDsFollowContent: ids are distinct, of version 8, the same for one
// content however it is packed, mapped and cut into reads; those of a prefix
// are a prefix; and a changed line changes its own id and all after it.
func TestIDsFollowContent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.SampledFrom([]string{"a", "b", "", "1", "\"x\"", "\"y\nz\""})
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return "e" + cell.Draw(t, "first") + "u," + cell.Draw(t, "second")
		}), 1, 30).Draw(t, "rows")
		for i := range rows {
			rows[i] = strings.ReplaceAll(rows[i], "\"x\"u", "xu")
			rows[i] = strings.ReplaceAll(rows[i], "\"y\nz\"u", "yu")
		}
		const header = "event,user_id\n"
		text := header + strings.Join(rows, "\n")
		ids := idsOf(t, strings.NewReader(text), sendfile.Options{})
		checkIDs(t, ids, len(rows))

		for name, other := range map[string][]string{
			"byte by byte": idsOf(t, iotest.OneByteReader(strings.NewReader(text)), sendfile.Options{}),
			"mapped":       idsOf(t, strings.NewReader(text), sendfile.Options{Mapping: sendfile.Mapping{EventName: "x", Anon: "event"}}),
			"with a mark":  idsOf(t, strings.NewReader("\xef\xbb\xbf"+text+"\n"), sendfile.Options{}),
			"CRLF":         idsOf(t, strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n")), sendfile.Options{}),
		} {
			if strings.Join(other, " ") != strings.Join(ids, " ") {
				t.Fatalf("%s: ids %q, want %q", name, other, ids)
			}
		}
		k := rapid.IntRange(0, len(rows)-1).Draw(t, "k")
		prefix := idsOf(t, strings.NewReader(header+strings.Join(rows[:k], "\n")), sendfile.Options{})
		if strings.Join(prefix, " ") != strings.Join(ids[:k], " ") {
			t.Fatalf("the first %d lines have ids %q, want %q", k, prefix, ids[:k])
		}
		rows[k] = "x" + rows[k]
		checkChanged(t, ids, idsOf(t, strings.NewReader(header+strings.Join(rows, "\n")), sendfile.Options{}), k)
		checkChanged(t, ids, idsOf(t, strings.NewReader(text), sendfile.Options{Seed: "s"}), 0)
	})
}

func checkIDs(t *rapid.T, ids []string, n int) {
	seen := map[string]bool{}
	for _, id := range ids {
		u, err := uuid.Parse(id)
		if err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("id %q: %v", id, err)
		}
		seen[id] = true
	}
	if len(seen) != n {
		t.Fatalf("%d ids for %d lines", len(seen), n)
	}
}

// checkChanged expects the ids before line k to be the same and the others
// not.
func checkChanged(t *rapid.T, before, after []string, k int) {
	for i := range before {
		if (before[i] == after[i]) != (i < k) {
			t.Fatalf("line %d changed, id %d: %s, then %s", k, i, before[i], after[i])
		}
	}
}

func TestIDsOfGzip(t *testing.T) {
	t.Parallel()
	const text = "event,user_id\na,u\nb,u\nb,u\n"
	plain := idsOf(t, strings.NewReader(text), sendfile.Options{})
	// Two gzip members in one file are one content, as gunzip reads them.
	for _, packed := range []string{zip(t, text), zip(t, text[:20]) + zip(t, text[20:])} {
		if got := idsOf(t, strings.NewReader(packed), sendfile.Options{}); strings.Join(got, " ") != strings.Join(plain, " ") {
			t.Errorf("gzip: ids %q, want %q", got, plain)
		}
	}
}
