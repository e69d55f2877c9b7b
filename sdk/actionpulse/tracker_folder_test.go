package actionpulse_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// inFolder lets trackers keep their records in a folder.
func inFolder(t *testing.T, s *intake, h *heard) actionpulse.TrackerOptions {
	t.Helper()
	o := h.options(s)
	o.Dir = filepath.Join(t.TempDir(), "a", "outbox")
	return o
}

// abort closes a tracker that cannot send, and demands that n records stay.
func abort(t *testing.T, tracker *actionpulse.Tracker, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := tracker.Close(ctx)
	if left, ok := errors.AsType[*actionpulse.LeftError](err); !ok || left.Records != n || !left.Kept {
		t.Errorf("Close: %v, want %d records kept", err, n)
	}
}

// TestTrackerGoesOnAfterARestart with the ids and times from before.
func TestTrackerGoesOnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		first := newTracker(t, serverKey, o)
		fact := time.Now()
		ids := []string{track(t, first, "one"), track(t, first, "two")}
		abort(t, first, 2)
		elapse(46 * time.Hour)
		second := newTracker(t, "aps_a_rotated_key", o)
		synctest.Wait() // what is there does not wait for more
		sent := s.sent()
		if len(sent) != 1 || sent[0].names() != "one two" || sent[0].key != "Bearer aps_a_rotated_key" {
			t.Fatalf("got %+v", sent)
		}
		for i, e := range sent[0].events {
			if e.EventID != ids[i] || e.TS != fact.UTC().Format("2006-01-02T15:04:05.000Z") {
				t.Errorf("got %+v, want id %s of %s", e, ids[i], fact)
			}
		}
		closeNow(t, second)
		third := newTracker(t, serverKey, o)
		closeNow(t, third)
		if n := len(s.sent()); n != 1 {
			t.Errorf("%d requests: something was sent again", n)
		}
	})
}

func TestTrackerFolderIsPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		tracker := newTracker(t, serverKey, o)
		track(t, tracker, "e")
		if _, err := actionpulse.NewTracker("https://pulse.example", serverKey, o); !errors.Is(err, actionpulse.ErrOutboxInUse) {
			t.Errorf("a second tracker: %v", err)
		}
		files := 0
		err := filepath.Walk(o.Dir, func(path string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			want := os.FileMode(0o600)
			if info.IsDir() {
				want = 0o700
			}
			if info.Mode().Perm() != want {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			if content, err := os.ReadFile(path); err == nil {
				files++
				if strings.Contains(string(content), serverKey[4:]) {
					t.Errorf("%s holds the key", path)
				}
			}
			return nil
		})
		if err != nil || files < 4 {
			t.Errorf("%d files, %v", files, err)
		}
		closeNow(t, tracker)
	})
}

// TestTrackerFolderHasAnOwner: records do not go to another server or project,
// unless it is the same project elsewhere.
func TestTrackerFolderHasAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		for i, c := range []struct {
			server, project string
			refused         bool
		}{
			{"https://one.example", "", false},
			{"https://two.example", "", true},
			{"https://one.example/", "shop", false},
			{"https://two.example", "shop", false},
			{"https://two.example", "blog", true},
			{"https://two.example", "", false},
			{"https://two.example", "blog", true},
		} {
			o.Project = c.project
			tracker, err := actionpulse.NewTracker(c.server, serverKey, o)
			if errors.Is(err, actionpulse.ErrOutboxOwner) != c.refused || (err != nil) != c.refused {
				t.Errorf("%d: got %v", i, err)
			}
			if err == nil {
				closeNow(t, tracker)
			}
		}
	})
}

// TestTrackerBindsRecordsToTheKindOfKey they were made under.
func TestTrackerBindsRecordsToTheKindOfKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		browser := newTracker(t, browserKey, o)
		held := track(t, browser, "by browser")
		abort(t, browser, 1)

		server := newTracker(t, serverKey, o)
		h.says(t, "key_kind=browser")
		track(t, server, "by server")
		if got := server.Stats(); got.Held != 1 || got.Pending != 1 {
			t.Errorf("got %+v", got)
		}
		closeNow(t, server)
		for _, r := range s.sent() {
			if r.names() != "by server" || r.key != "Bearer "+serverKey {
				t.Errorf("sent %q with %s", r.names(), r.key)
			}
		}
		o.OtherKeys = []string{browserKey, legacyKey}
		both := newTracker(t, serverKey, o)
		closeNow(t, both)
		if last := s.sent()[len(s.sent())-1]; last.events[0].EventID != held || last.key != "Bearer "+browserKey {
			t.Errorf("sent %+v", last)
		}
		o.OtherKeys = []string{serverKey}
		if _, err := actionpulse.NewTracker("https://pulse.example", serverKey, o); err == nil {
			t.Error("two keys of one kind are taken")
		}
	})
}

// TestTrackerOneKindDoesNotStopAnother: a refusal of one key is about that key.
func TestTrackerOneKindDoesNotStopAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		browser := newTracker(t, browserKey, o)
		track(t, browser, "by browser")
		abort(t, browser, 1)
		s.script = append(s.script, declines(401, "unauthenticated"))
		o.OtherKeys = []string{browserKey}
		both := newTracker(t, serverKey, o)
		synctest.Wait()
		id := track(t, both, "by server")
		elapse(2 * time.Second)
		synctest.Wait()
		if s.count(id) != 1 || both.Stats().Pending != 1 {
			t.Errorf("stored %v, %+v", s.stored, both.Stats())
		}
		both.Resume()
		closeAfter(t, both, time.Minute)
	})
}

// TestTrackerSetsDamageAside: what cannot be read does not stop the rest.
func TestTrackerSetsDamageAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		tracker := newTracker(t, serverKey, o)
		for i := range 5 {
			track(t, tracker, fmt.Sprint("event-", i))
		}
		abort(t, tracker, 5)
		segments, err := filepath.Glob(filepath.Join(o.Dir, "server", "*.seg"))
		if err != nil || len(segments) != 1 {
			t.Fatalf("%v, %v", segments, err)
		}
		content, err := os.ReadFile(segments[0])
		if err != nil {
			t.Fatal(err)
		}
		broken := strings.Replace(string(content), "event-2", "event-X", 1)
		if err := os.WriteFile(segments[0], []byte(broken+"\xa9AP"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			tracker = newTracker(t, serverKey, o)
			closeNow(t, tracker)
		}
		if sent := s.sent(); len(sent) != 1 || sent[0].names() != "event-0 event-1 event-3 event-4" {
			t.Errorf("sent %+v", sent)
		}
		if n := strings.Count(h.log.String(), "is set aside"); n != 1 {
			t.Errorf("the damage is told of %d times: %s", n, h.log.String())
		}
		h.says(t, "cut off")
		kept, err := filepath.Glob(filepath.Join(o.Dir, "server", "damaged-*"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("%v, %v", kept, err)
		}
		if aside, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(aside), "event-X") {
			t.Errorf("set aside: %q, %v", aside, err)
		}
	})
}

func TestTrackerFolderCanBeBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		o.MaxPendingBytes, o.MaxAge = 300, time.Hour
		tracker := newTracker(t, serverKey, o)
		var ids []string
		for {
			id, err := tracker.Track(actionpulse.Event{Name: "e", UserID: "u"})
			if errors.Is(err, actionpulse.ErrOutboxFull) {
				break
			}
			if err != nil || len(ids) > 10 {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if err := tracker.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, track(t, tracker, "room again"))
		closeNow(t, tracker)
		if len(s.stored) != len(ids) || len(ids) < 3 {
			t.Errorf("%d of %d are stored", len(s.stored), len(ids))
		}
	})
}

// TestTrackerRefusesAFolderItCannotWrite: a file in its place.
func TestTrackerRefusesAFolderItCannotWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := (&heard{}).options(newIntake())
	o.Dir = path
	if _, err := actionpulse.NewTracker("https://pulse.example", serverKey, o); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// TestTrackerHearsThatTheFolderIsGone: what would be written into nowhere is not
// taken.
func TestTrackerHearsThatTheFolderIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newIntake(), &heard{}
		o := inFolder(t, s, h)
		o.MaxAge = time.Hour
		tracker := newTracker(t, serverKey, o)
		track(t, tracker, "one")
		if err := os.RemoveAll(o.Dir); err != nil {
			t.Fatal(err)
		}
		if id, err := tracker.Track(actionpulse.Event{Name: "two", UserID: "ada"}); !errors.Is(err, os.ErrNotExist) || id != "" {
			t.Errorf("Track returns %q, %v", id, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tracker.Close(ctx); err == nil {
			t.Error("Close says that all is well")
		}
	})
}
