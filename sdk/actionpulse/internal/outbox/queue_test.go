package outbox_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

func mustOpen(t *testing.T, o outbox.Options) (*outbox.Outbox, outbox.Queue) {
	t.Helper()
	box, err := outbox.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	q, err := box.Queue("server")
	if err != nil {
		t.Fatal(err)
	}
	return box, q
}

func mustClose(t *testing.T, box *outbox.Outbox) {
	t.Helper()
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
}

var all = outbox.Limit{Records: 1 << 20, Bytes: 1 << 30}

// TestSegmentCutAtAnyByte: a process that dies while it writes leaves whole
// records before the cut, and goes on behind them.
func TestSegmentCutAtAnyByte(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	box, q := mustOpen(t, outbox.Options{Dir: dir, Server: "s"})
	for i := range 3 {
		if _, err := q.Append(outbox.Record{At: int64(i), Data: fmt.Appendf(nil, "record %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, box)
	segments, err := filepath.Glob(filepath.Join(dir, "server", "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v, %v", segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	frame := len(content) / 3
	for size := range content {
		if err := os.WriteFile(segments[0], content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		torn := 0
		box, q := mustOpen(t, outbox.Options{Dir: dir, Server: "s", Damaged: func(d outbox.Damage) {
			if torn++; !d.Torn || int(d.From) != size/frame*frame || int(d.To) != size {
				t.Errorf("cut at %d: damage %+v", size, d)
			}
		}})
		records, err := q.Peek(all)
		if err != nil || len(records) != size/frame || torn != min(1, size%frame) {
			t.Fatalf("cut at %d: %d records, %d damages, %v", size, len(records), torn, err)
		}
		if len(records) > 0 {
			if _, err := q.Append(outbox.Record{Data: []byte("next")}); err != nil {
				t.Fatal(err)
			}
			again, err := q.Peek(all)
			if err != nil || len(again) != len(records)+1 || string(again[len(records)].Data) != "next" {
				t.Fatalf("cut at %d: then %d records, %v", size, len(again), err)
			}
		}
		mustClose(t, box)
		if err := os.RemoveAll(segments[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneProcessHasAFolder(t *testing.T) {
	t.Parallel()
	o := outbox.Options{Dir: t.TempDir(), Server: "s"}
	box, _ := mustOpen(t, o)
	if _, err := outbox.Open(o); !errors.Is(err, outbox.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	mustClose(t, box)
	box, _ = mustOpen(t, o)
	mustClose(t, box)
}

func TestAFolderOfALaterFormatIsRefused(t *testing.T) {
	t.Parallel()
	for _, content := range []string{`{"format":2,"server":"s"}`, `{`} {
		o := outbox.Options{Dir: t.TempDir(), Server: "s"}
		if err := os.WriteFile(filepath.Join(o.Dir, "owner.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := outbox.Open(o); err == nil {
			t.Errorf("%s was taken", content)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	o := outbox.Options{Dir: t.TempDir(), Server: "s", MaxRecords: 2, MaxBytes: outbox.MaxData + 1}
	box, folder := mustOpen(t, o)
	for what, q := range map[string]outbox.Queue{"folder": folder, "memory": outbox.NewMemory(o)} {
		for i, c := range []struct {
			size int
			want error
		}{
			{outbox.MaxData + 1, outbox.ErrTooLarge},
			{outbox.MaxData, nil},
			{2, outbox.ErrFull},
			{1, nil},
			{0, outbox.ErrFull},
		} {
			if _, err := q.Append(outbox.Record{Data: make([]byte, c.size)}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%s %d: got %v, want %v", what, i, err, c.want)
			}
		}
		records, err := q.Peek(outbox.Limit{Records: 1})
		if err != nil || len(records) != 1 {
			t.Fatalf("%s: a record over the limit is not shown: %d, %v", what, len(records), err)
		}
		if err := q.Ack(records[0]); err != nil || q.State().Records != 1 || q.State().Bytes != 1 {
			t.Errorf("%s: %+v, %v", what, q.State(), err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if _, err := q.Append(outbox.Record{}); !errors.Is(err, outbox.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", what, err)
		}
	}
	mustClose(t, box)
}

// TestBegunSurvives, until the record is taken out.
func TestBegunSurvives(t *testing.T) {
	t.Parallel()
	o := outbox.Options{Dir: t.TempDir(), Server: "s"}
	box, q := mustOpen(t, o)
	seq, err := q.Append(outbox.Record{Data: []byte("x")})
	if err == nil {
		err = q.Begin(outbox.Record{Seq: seq})
	}
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, box)
	box, q = mustOpen(t, o)
	records, err := q.Peek(all)
	if err != nil || len(records) != 1 || q.Begun() != seq || records[0].Seq != seq {
		t.Fatalf("%d records, begun %d, %v", len(records), q.Begun(), err)
	}
	if err := q.Ack(records[0]); err != nil || q.Begun() != 0 {
		t.Errorf("begun %d, %v", q.Begun(), err)
	}
	mustClose(t, box)
}

// FuzzSegment: whatever a segment and a mark hold, a queue opens, shows what
// is whole, and takes more.
func FuzzSegment(f *testing.F) {
	d := newDisk(func(int) int { return 0 })
	box, err := outbox.Open(outbox.Options{Dir: "box", Server: "s", FS: d})
	if err != nil {
		f.Fatal(err)
	}
	q, err := box.Queue("server")
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		if _, err := q.Append(outbox.Record{Data: bytes.Repeat([]byte{byte(i)}, 10*i)}); err != nil {
			f.Fatal(err)
		}
	}
	segment, mark := d.names["box/server/0000000000000001.seg"].content, d.names["box/server/mark"].content
	f.Add(segment, mark)
	f.Add(segment[1:], mark[:40])
	f.Add(append(segment[:70:70], segment...), []byte{})
	f.Add(binary.LittleEndian.AppendUint32([]byte("\xa9APR"), 1<<31), mark)
	f.Fuzz(func(t *testing.T, segment, mark []byte) {
		d := newDisk(func(int) int { return 0 })
		d.names["box/server/mark"] = &node{content: slices.Clone(mark)}
		d.names["box/server/0000000000000001.seg"] = &node{content: slices.Clone(segment)}
		d.names["box/server/0000000000000002.seg"] = &node{content: slices.Clone(segment)}
		box, q := mustOpen(t, outbox.Options{Dir: "box", Server: "s", FS: d})
		before, err := q.Peek(all)
		if err != nil || q.State().Records != len(before) {
			t.Fatalf("%d records, %+v, %v", len(before), q.State(), err)
		}
		if _, err := q.Append(outbox.Record{Data: []byte("more")}); err != nil {
			t.Fatal(err)
		}
		after, err := q.Peek(all)
		if err != nil || len(after) != len(before)+1 {
			t.Fatalf("%d records, then %d, %v", len(before), len(after), err)
		}
		mustClose(t, box)
	})
}
