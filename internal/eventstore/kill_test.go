package eventstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/proptest"
	"github.com/actionpulse/actionpulse/internal/record"
)

// writerEnv, when set, makes the test binary apply records to the store at
// that path until it is killed.
const writerEnv = "EVENTSTORE_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		if err := writeForEver(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	proptest.Checks(40) // each is a project on a real store, with every question asked of it
	goleak.VerifyTestMain(m)
}

// writeForEver prints each position that Apply said is stored.
func writeForEver(path string) error {
	ctx := context.Background()
	s, err := eventstore.Open(ctx, eventstore.Options{Path: path, CheckpointBytes: 4 << 20})
	if err != nil {
		return err
	}
	mark, err := s.Mark(ctx)
	for err == nil {
		records := benchRecords(mark.Position+1, 4)
		link := record.Record{
			Position: records[3].Last() + 1, Received: records[3].Received, Window: window, Store: storeID, Project: 1,
			KeyKind: record.KeyServer, Items: []record.Item{identify("x", fmt.Sprint(mark.Position), benchTime, `{"a":1}`)},
		}
		mark, err = s.Apply(ctx, eventstore.ApplyParams{Records: append(records, link)})
		if err == nil {
			_, err = fmt.Println(mark.Position)
		}
	}
	return err
}

// What Apply acknowledged before the process was killed is there, as a whole
// number of batches, and nothing else.
func TestKilledWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.duckdb")
	if err := eventstore.Create(t.Context(), path, storeID); err != nil {
		t.Fatal(err)
	}
	for _, batches := range []int{1, 7, 23} { // the last with checkpoints
		acknowledged := killAfter(t, path, batches)
		s, err := eventstore.Open(t.Context(), eventstore.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		checkStored(t, s, acknowledged)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter runs a writer, kills it in the midst of the batch after the given
// number and returns the last position it acknowledged.
func killAfter(t *testing.T, path string, batches int) uint64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if batches--; batches == 0 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || batches > 0 {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return last
}

func checkStored(t *testing.T, s *eventstore.Store, acknowledged uint64) {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := snap.RowCount(t.Context())
	repeats, err2 := snap.Repeated(t.Context(), 1)
	if err := errors.Join(err, err2, snap.Close()); err != nil {
		t.Fatal(err)
	}
	mark := snap.Mark()
	if mark.Position < acknowledged || mark.Position > acknowledged+2*2001 {
		t.Errorf("position %d, acknowledged %d", mark.Position, acknowledged)
	}
	if uint64(rows) != mark.Position || rows != mark.Rows || rows%2001 != 0 || len(repeats) != 0 {
		t.Errorf("%d rows, mark %+v, repeats %+v", rows, mark, repeats)
	}
}
