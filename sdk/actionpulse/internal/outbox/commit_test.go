package outbox

import (
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// heldFS counts the syncs of segments, and holds the first one until told.
type heldFS struct {
	FS
	syncs atomic.Int64
	begun chan struct{}
	goOn  chan struct{}
}

func (h *heldFS) OpenFile(path string) (File, error) {
	f, err := h.FS.OpenFile(path)
	if err != nil || filepath.Ext(path) != ".seg" {
		return f, err
	}
	return heldFile{f, h}, nil
}

type heldFile struct {
	File
	fs *heldFS
}

func (f heldFile) Sync() error {
	if f.fs.syncs.Add(1) == 1 {
		close(f.fs.begun)
		<-f.fs.goOn
	}
	return f.File.Sync()
}

// TestAppendsShareASync: all that arrive while one is under way.
func TestAppendsShareASync(t *testing.T) {
	t.Parallel()
	h := &heldFS{FS: systemFS{}, begun: make(chan struct{}), goOn: make(chan struct{})}
	box, err := Open(Options{Dir: t.TempDir(), Server: "s", FS: h})
	if err != nil {
		t.Fatal(err)
	}
	q, err := box.Queue("server")
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	var group sync.WaitGroup
	add := func() {
		if _, err := q.Append(Record{Data: []byte("x")}); err != nil {
			t.Error(err)
		}
	}
	group.Go(add)
	<-h.begun
	for range n - 1 {
		group.Go(add)
	}
	for waiting := 0; waiting < n-1; runtime.Gosched() {
		waiting = box.queues["server"].waiting()
	}
	if s := q.State(); s.Records != 0 {
		t.Errorf("%d records count before they are on disk", s.Records)
	}
	close(h.goOn)
	group.Wait()
	if s := q.State(); s.Records != n || h.syncs.Load() != 2 {
		t.Errorf("%+v with %d syncs, want %d records with 2", s, h.syncs.Load(), n)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
}

// waiting returns how many records are in the group that is written next.
func (f *folder) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.group == nil {
		return 0
	}
	return f.group.records
}
