package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// bucket is an object store that can be down.
type bucket struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string][]byte
	down    bool
	// The next holds writes of chunks wait for held, each after it has told arrived.
	holds         int
	held, arrived chan struct{}
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{objects: map[string][]byte{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.wait(r)
		b.mu.Lock()
		defer b.mu.Unlock()
		content, there := b.objects[r.URL.Path]
		w.Header().Set("ETag", `"x"`)
		switch {
		case b.down:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Method == http.MethodPut:
			content, err := signed(r.Body)
			if err != nil {
				t.Error(err)
			}
			b.objects[r.URL.Path] = content
		case r.Method == http.MethodDelete:
			delete(b.objects, r.URL.Path)
		case r.Method == http.MethodGet && there:
			w.Header().Set("Last-Modified", "Fri, 01 May 2026 10:00:00 GMT")
			_, _ = w.Write(content)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		}
	}))
	t.Cleanup(b.Close)
	return b
}

// wait holds the write of a chunk until it is let go.
func (b *bucket) wait(r *http.Request) {
	b.mu.Lock()
	holds, held, arrived := b.holds > 0 && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ".zst"), b.held, b.arrived
	if holds {
		b.holds--
	}
	b.mu.Unlock()
	if holds {
		arrived <- struct{}{}
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}
}

// hold has the next n writes of chunks wait; arrived tells of each, and let lets all go.
func (b *bucket) hold(n int) (arrived <-chan struct{}, let func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := make(chan struct{})
	b.holds, b.held, b.arrived = n, held, make(chan struct{}, n)
	return b.arrived, func() { close(held) }
}

// flags are those of a server whose recordings are in the bucket.
func (b *bucket) flags() []string {
	return []string{"--replay.blobs", "s3://replays/x?endpoint=" + b.URL, "--replay.access_key", "k", "--replay.secret_key", "s"}
}

// fill copies the files of a folder to the bucket, below a path.
func (b *bucket) fill(t *testing.T, path, dir string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		b.objects[path+filepath.ToSlash(strings.TrimPrefix(file, dir))] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// signed reads a small object, which is one chunk between its signatures.
func signed(body io.Reader) ([]byte, error) {
	in := bufio.NewReader(body)
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read the size of a chunk: %w", err)
	}
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseInt(size, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("read the size of a chunk: %w", err)
	}
	return io.ReadAll(io.LimitReader(in, n))
}

func (b *bucket) set(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// TestReplayInABucket: while the bucket does not answer nothing is taken, what
// is known is acknowledged all the same, and what was refused is new afterwards.
// A server does not start without it.
func TestReplayInABucket(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	site := apptest.New(t, b.flags()...)
	r := site.MustServe()
	c := caller{r, r.Setup.BrowserToken}
	record(t, c, chunk("s", 0, page("/0")), "first")
	if got := events(t, r, "s", 0); got != page("/0") || len(b.objects) != 2 { // with which place it is
		t.Errorf("%s, %d objects", got, len(b.objects))
	}
	b.set(true)
	refused := c.refused(t, "internal", "POST", "/v1/replay", chunk("s", 1, page("/1")))
	if refused.status != http.StatusInternalServerError || refused.detail("retryable") != true || refused.header.Get("X-Should-Retry") != "true" || refused.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %v", refused.status, refused.header, refused.body)
	}
	record(t, c, chunk("s", 0, page("/0")), "duplicate")
	record(t, c, chunk("s", 0, page("/1")), "conflict")
	unread := owner(r).refused(t, "unavailable", "GET", replayOf(r, "s")+"/chunks/0", "")
	if unread.status != http.StatusServiceUnavailable || unread.detail("retryable") != true || unread.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %v", unread.status, unread.header, unread.body)
	}
	if one := owner(r).must(t, 200, "GET", replayOf(r, "s"), ""); one.body["chunk_count"] != 1.0 {
		t.Errorf("%v", one.body)
	}
	b.set(false)
	record(t, c, chunk("s", 1, page("/1")), "first")
	if got := events(t, r, "s", 1); got != page("/1") {
		t.Error(got)
	}
	r.MustStop()
	b.set(true)
	for range 2 { // it refuses, and then there is nobody
		if _, err := site.Serve(); err == nil || !strings.Contains(err.Error(), "replay.blobs: look for the bucket replays") {
			t.Errorf("it starts without its bucket: %v", err)
		}
		b.Close()
	}
}
