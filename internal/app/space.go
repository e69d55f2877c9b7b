package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// spaceInterval is how often free space is looked at. At 200 MB a second, more
// than intake can take, 40 MB are written between two looks.
const spaceInterval = 200 * time.Millisecond

// spaceRetry is what a caller is told to wait while the disk is full.
const spaceRetry = 10 * time.Second

// spaceGuard refuses writes while the disk is nearly full: the engines do not
// survive a full one. It resumes by itself.
type spaceGuard struct {
	dir     string
	limits  config.Storage
	log     *slog.Logger
	refusal atomic.Pointer[fault.Error]
	// free is replaced in tests.
	free func(dir string) (free, total uint64, err error)
	// seen is told what was found and decided.
	seen func(free, least int64, refusing bool)
}

// check looks at the free space once.
func (g *spaceGuard) check() {
	free, total, err := g.free(g.dir)
	if err != nil {
		g.log.Error("free space is unknown", "error", err)
		return
	}
	least := max(uint64(g.limits.MinFreeBytes), uint64(g.limits.MinFreePercent/100*float64(total)))
	refusing := free < least
	g.seen(int64(free), int64(least), refusing)
	if refusing == (g.refusal.Load() != nil) {
		return
	}
	if !refusing {
		g.refusal.Store(nil)
		g.log.Info("there is space again; intake goes on", "free_bytes", free)
		return
	}
	g.refusal.Store(fault.New(api.CodeInternal, "The server's disk is nearly full; nothing was accepted").After(spaceRetry))
	g.log.Error("the disk is nearly full; intake is refused", "free_bytes", free, "least_bytes", least)
}

// run checks until ctx is done.
func (g *spaceGuard) run(ctx context.Context) {
	ticker := time.NewTicker(spaceInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			g.check()
		case <-ctx.Done():
			return
		}
	}
}

// guard returns the refusal in force, or nil.
func (g *spaceGuard) guard() error {
	if refusal := g.refusal.Load(); refusal != nil {
		return refusal
	}
	return nil
}

// freeSpace returns what an ordinary user may still write, and the whole size
// of the file system.
func freeSpace(dir string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
