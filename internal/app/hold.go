package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/replay"
)

// The steps that a backup asks of a running server, in this order. hold: the
// event store stands still, so that nothing is trimmed either. intake: nobody
// is erased any more, and a copy of the intake store is there. release: all goes
// on, since the command has its snapshot of the database; only replays are not
// deleted until the session ends. done: nothing of this has been let go of
// before the command had everything.
const (
	backupSession = "/backup"

	stepHold    = "hold"
	stepIntake  = "intake"
	stepRelease = "release"
	stepDone    = "done"
)

// checkpointDir is a copy of the intake store, made of links, while a backup
// takes it away.
const checkpointDir = "intake.checkpoint"

// still is what a backup keeps others from doing. Who does it holds the lock
// for reading, the backup for writing.
type still struct {
	// erasing: between the copy of the intake store and that of the database,
	// no erasure may be written to the one and noted in the other.
	erasing sync.RWMutex
	// deleting: a chunk that the copy of the database knows is kept until it has
	// been copied.
	deleting sync.RWMutex
	// backup is held by the one backup that there is.
	backup sync.Mutex
}

// sessions are what the server does with commands that stay.
func (s *server) sessions() map[string]controlSession {
	return map[string]controlSession{backupSession: s.hold}
}

// hold stands still for a backup, step by step.
func (s *server) hold(ctx context.Context, l *line) error {
	if !s.still.backup.TryLock() {
		return l.write(message{Error: "another backup is under way"})
	}
	defer s.still.backup.Unlock()
	h := &heldServer{server: s}
	defer h.end()
	for {
		asked, err := l.read()
		if err != nil {
			return err
		}
		answer, err := h.step(ctx, asked.Step)
		if err != nil {
			return errors.Join(fmt.Errorf("hold still for a backup: %w", err), l.write(message{Error: err.Error()}))
		}
		if err := l.write(answer); err != nil {
			return err
		}
	}
}

// heldServer is what a session holds of a server.
type heldServer struct {
	server *server
	events *eventstore.Hold
	// soon lets go what is held until the release, undo what is held until the
	// end.
	soon, undo []func()
}

// step does what a backup asks for.
func (h *heldServer) step(ctx context.Context, name string) (message, error) {
	switch {
	case name == stepHold && h.events == nil:
		return h.holdEvents(ctx)
	case name == stepIntake && h.events != nil && len(h.soon) == 1:
		return h.copyIntake(ctx)
	case name == stepRelease:
		h.release()
		// What is copied is older than what the folder says from here on.
		return message{}, h.server.folder.beginGeneration(ctx, h.server.stores.sql)
	case name == stepDone && h.events != nil && len(h.soon) == 0:
		h.end()
		return message{}, nil
	default:
		return message{}, fmt.Errorf("there is no step %q now", name)
	}
}

func (h *heldServer) holdEvents(ctx context.Context) (message, error) {
	h.server.still.deleting.Lock()
	h.undo = append(h.undo, h.server.still.deleting.Unlock)
	events, err := h.server.stores.events.Hold(ctx)
	if err != nil {
		return message{}, err
	}
	made, err := h.server.folder.readFormat()
	if err != nil {
		events.Release()
		return message{}, err
	}
	h.events, h.soon = events, append(h.soon, events.Release)
	crash.Point("backup.held")
	bucket, err := h.server.params.Config.Replay.S3()
	return message{Store: made.Store, Files: events.Files(), Bucket: bucket != nil}, err
}

func (h *heldServer) copyIntake(ctx context.Context) (message, error) {
	h.server.still.erasing.Lock()
	h.soon = append(h.soon, h.server.still.erasing.Unlock)
	dir := h.server.folder.path(checkpointDir)
	h.undo = append(h.undo, func() {
		if err := h.server.folder.dropCheckpoint(); err != nil {
			h.server.params.Log.Warn("a copy that a backup has used is left behind; the next start removes it", "error", err)
		}
	})
	acknowledged, err := h.server.stores.intake.Checkpoint(ctx, dir)
	crash.Point("backup.checkpointed")
	return message{Dir: checkpointDir, Acknowledged: acknowledged}, err
}

// release lets everything go on.
func (h *heldServer) release() {
	for _, undo := range h.soon {
		undo()
	}
	h.soon = nil
}

// end lets go of the rest.
func (h *heldServer) end() {
	h.release()
	for _, undo := range h.undo {
		undo()
	}
	h.undo = nil
}

// dropCheckpoint removes the copy that a backup has used, if there is one.
func (f folder) dropCheckpoint() error {
	if err := os.RemoveAll(f.path(checkpointDir)); err != nil {
		return fmt.Errorf("remove %s: %w", checkpointDir, err)
	}
	return nil
}

// heldBlobs keeps blobs from being deleted while a backup copies them.
type heldBlobs struct {
	replay.Blobs

	still *still
}

// Delete waits for the end of a backup.
func (b heldBlobs) Delete(ctx context.Context, name string) error {
	b.still.deleting.RLock()
	defer b.still.deleting.RUnlock()
	return b.Blobs.Delete(ctx, name)
}
