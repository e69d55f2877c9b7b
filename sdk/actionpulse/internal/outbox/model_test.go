package outbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// model is what a queue must hold, by the names of records.
type model struct {
	disk  *disk
	box   *outbox.Outbox
	queue outbox.Queue
	made  int
	// kept must be there, in this order.
	kept []string
	// perhaps may be there after a crash: they were being added when it came,
	// or could not be taken back so far.
	perhaps map[string]bool
	// again may be there after a crash: they were being taken out.
	again []string
}

func (m *model) open(t *rapid.T) {
	var err error
	m.box, err = outbox.Open(outbox.Options{Dir: "box", Server: "s", SegmentBytes: 600, FS: m.disk})
	if err == nil {
		m.queue, err = m.box.Queue("server")
	}
	if err != nil && !errors.Is(err, errFull) && !errors.Is(err, errCrashed) {
		t.Fatal(err)
	}
	if err != nil { // the disk failed amid opening: once more, without that
		m.reboot(t, true)
	}
}

// reboot ends the process, with or without the machine, and opens the folder
// again.
func (m *model) reboot(t *rapid.T, machine bool) {
	m.disk = m.disk.restart(machine)
	m.open(t)
	got := m.names(t)
	var kept []string
	for _, name := range got {
		kept = append(kept, name)
		if !slices.Contains(m.kept, name) && !m.perhaps[name] && !slices.Contains(m.again, name) {
			t.Fatalf("%s came back from nowhere: %v", name, got)
		}
	}
	for _, name := range m.kept {
		if !slices.Contains(got, name) {
			t.Fatalf("%s is lost: %v of %v", name, got, m.kept)
		}
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatalf("out of order or twice: %v", got)
	}
	m.kept, m.again, m.perhaps = kept, nil, map[string]bool{}
}

func (m *model) names(t *rapid.T) []string {
	records, err := m.queue.Peek(outbox.Limit{Records: 1 << 20, Bytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, r := range records {
		name := string(r.Data[:6])
		names = append(names, name)
		if !bytes.Equal(r.Data, dataOf(name, len(r.Data)-len(name))) {
			t.Fatalf("%s is not what was added: %q", name, r.Data)
		}
		if i > 0 && r.Seq <= records[i-1].Seq {
			t.Fatalf("numbers do not rise: %d, %d", records[i-1].Seq, r.Seq)
		}
	}
	return names
}

func (m *model) append(t *rapid.T) {
	m.made++
	name := fmt.Sprintf("%06d", m.made)
	data := dataOf(name, rapid.IntRange(0, 200).Draw(t, "size"))
	failed := m.disk.failed
	switch _, err := m.queue.Append(outbox.Record{Data: data}); {
	case err == nil:
		m.kept = append(m.kept, name)
		m.perhaps = map[string]bool{} // they had to be taken back first
	case errors.Is(err, errCrashed), m.disk.failed > failed+1:
		m.perhaps[name] = true
	case errors.Is(err, errFull): // and so it must never be seen again
	default:
		t.Fatal(err)
	}
}

// dataOf returns the data of a record: its name and some more bytes.
func dataOf(name string, more int) []byte {
	return append([]byte(name), bytes.Repeat([]byte(name[5:]), more)...)
}

func (m *model) ack(t *rapid.T) {
	l := outbox.Limit{Records: rapid.IntRange(1, 9).Draw(t, "records"), Bytes: rapid.IntRange(1, 900).Draw(t, "bytes")}
	records, err := m.queue.Peek(l)
	if err != nil {
		if errors.Is(err, errCrashed) {
			return
		}
		t.Fatal(err)
	}
	if len(records) == 0 {
		if len(m.kept) > 0 {
			t.Fatalf("Peek shows nothing of %v", m.kept)
		}
		return
	}
	n := rapid.IntRange(1, len(records)).Draw(t, "taken")
	if err := m.queue.Ack(records[n-1]); err != nil {
		m.again = append(m.again, m.kept[:n]...)
	} else {
		m.again = nil
	}
	m.kept = m.kept[n:]
}

// TestNothingIsLostAndNothingComesBack: whatever the disk does, a record whose
// Append has returned is there until it is taken out, and then is not.
func TestNothingIsLostAndNothingComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "draw") }
		m := &model{disk: newDisk(draw), perhaps: map[string]bool{}}
		m.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"append": m.append,
			"ack":    m.ack,
			"crash soon": func(t *rapid.T) {
				m.disk.crashAt = rapid.IntRange(0, 8).Draw(t, "changes")
			},
			"fail soon": func(t *rapid.T) {
				m.disk.failAt = rapid.IntRange(0, 6).Draw(t, "changes")
				m.disk.failEnd = m.disk.failAt + rapid.IntRange(1, 4).Draw(t, "failures")
			},
			"kill":  func(t *rapid.T) { m.reboot(t, false) },
			"power": func(t *rapid.T) { m.reboot(t, true) },
			"": func(t *rapid.T) {
				if m.disk.crashed {
					m.reboot(t, true)
				}
				if got := m.names(t); !slices.Equal(got, m.kept) {
					t.Fatalf("got %v, want %v", got, m.kept)
				}
				if s := m.queue.State(); s.Records != len(m.kept) {
					t.Fatalf("%d records in State, want %d", s.Records, len(m.kept))
				}
			},
		})
	})
}
