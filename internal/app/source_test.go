package app

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/actionpulse/actionpulse/internal/eventstore"
)

// answerSteps is a server that gives one answer to each step, and is gone then.
func answerSteps(t *testing.T, answers ...message) *line {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close() //nolint:errcheck // nobody listens
		in := bufio.NewReader(theirs)
		for _, answer := range answers {
			if _, err := in.ReadBytes('\n'); err != nil {
				return
			}
			if json.NewEncoder(theirs).Encode(answer) != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = ours.Close() })
	return &line{rw: ours, in: bufio.NewReader(ours)}
}

// A server says names; the command knows the path to them, which need not be
// the server's: both may be relative.
func TestAServersFilesAreTheFoldersOwn(t *testing.T) {
	t.Parallel()
	f := folder(t.TempDir())
	if err := f.writeFormat(format{Version: FormatVersion, Store: "own"}); err != nil {
		t.Fatal(err)
	}
	s := &liveSource{folder: f, line: answerSteps(t,
		message{Store: "own", Files: []string{"data/events/events.duckdb", "events.duckdb.wal"}},
		message{Dir: "data/" + checkpointDir, Acknowledged: 7})}
	files, _, err := s.events()
	if want := []string{f.path(eventsDir, eventsFile), f.path(eventsDir, eventsFile+".wal")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("got %v, want %v: %v", files, want, err)
	}
	if intake, err := s.intake(); err != nil || intake != (intakeCopy{f.path(checkpointDir), 7}) {
		t.Errorf("got %+v, %v", intake, err)
	}
	// A server that has gone by the end makes no backup whole.
	if err := s.done(); err == nil {
		t.Error("the server is gone, and nobody notices")
	}
	other := &liveSource{folder: f, line: answerSteps(t, message{Store: "other", Files: []string{"events.duckdb"}})}
	if _, _, err := other.events(); !errors.Is(err, ErrRefused) {
		t.Errorf("a server of another folder: %v", err)
	}
}

// What a held event store says are names, too.
func TestAHeldEventStoreSaysNames(t *testing.T) {
	t.Parallel()
	path := folder(t.TempDir()).path(eventsFile)
	if err := eventstore.Create(t.Context(), path, [16]byte{1}); err != nil {
		t.Fatal(err)
	}
	s, err := eventstore.Open(t.Context(), eventstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	held, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if files := held.Files(); files[0] != eventsFile {
		t.Errorf("got %v", files)
	}
	held.Release()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
