package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
)

// source is a data folder that stands still for a backup, part by part: first
// events, then intake; then a snapshot of the database may be taken. What was
// returned stands still until close, only the event store until release.
type source interface {
	// events returns the files of the event store, and whether replays are in a
	// bucket.
	events() (files []string, bucket bool, err error)
	intake() (intakeCopy, error)
	release() error
	// done returns an error if something may have changed before it was copied.
	done() error
	// busy runs fn, which may take long.
	busy(ctx context.Context, fn func(context.Context) error) error
	close() error
}

// intakeCopy is an intake store that stands still.
type intakeCopy struct {
	Dir          string
	Acknowledged uint64
}

// openSource takes the folder, or begins a session with the server that holds
// it.
func (f folder) openSource(ctx context.Context, p BackupParams) (source, error) {
	lock, err := f.lock()
	if err == nil {
		acknowledged, err := f.checkParts(p)
		if err != nil {
			return nil, errors.Join(err, lock.Unlock())
		}
		return &stoppedSource{folder: f, params: p, lock: lock, acknowledged: acknowledged}, nil
	}
	if !errors.Is(err, errLocked) {
		return nil, err
	}
	l, err := f.session(ctx, backupSession)
	if err != nil {
		return nil, err
	}
	return &liveSource{folder: f, params: p, line: l}, nil
}

// checkParts refuses a folder, which is locked, that lacks one of the parts that
// no start makes, and returns the last position that was acknowledged. The
// database is looked at by whoever takes a snapshot of it.
func (f folder) checkParts(p BackupParams) (acknowledged uint64, err error) {
	info, err := os.Stat(f.path(eventsDir, eventsFile))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", f.path(eventsDir, eventsFile))
	}
	if err != nil {
		return 0, refuse("%s cannot be copied: %w; restore %s from a backup of this folder", eventsDir, err, eventsDir)
	}
	acknowledged, err = intakestore.Acknowledged(f.intakeOptions(p.Log, nil))
	if err != nil {
		return 0, refuse("%s cannot be copied: %w; %s", intakeDir, err, f.repairHint())
	}
	return acknowledged, nil
}

// stoppedSource is a folder that nobody serves. Neither its event store nor its
// intake store is opened, and nothing is brought up to date: a folder that an
// earlier version made, or one that a killed process left behind, stays one.
type stoppedSource struct {
	folder       folder
	params       BackupParams
	lock         *flock.Flock
	acknowledged uint64
}

func (s *stoppedSource) events() (files []string, bucket bool, err error) {
	s3, err := s.params.Config.Replay.S3()
	return eventstore.FilesOf(s.folder.path(eventsDir, eventsFile)), s3 != nil, err
}

func (s *stoppedSource) intake() (intakeCopy, error) {
	return intakeCopy{s.folder.path(intakeDir), s.acknowledged}, nil
}

func (s *stoppedSource) release() error { return nil }

func (s *stoppedSource) done() error { return nil }

func (s *stoppedSource) busy(ctx context.Context, fn func(context.Context) error) error {
	return fn(ctx)
}

func (s *stoppedSource) close() error { return s.lock.Unlock() }

// liveSource is a folder that a server holds. The database is read by this
// process: both engines give several processes one view each.
type liveSource struct {
	folder folder
	params BackupParams
	line   *line
}

func (s *liveSource) events() (files []string, bucket bool, err error) {
	answer, err := s.line.do(stepHold)
	if err != nil {
		return nil, false, err
	}
	made, err := s.folder.readFormat()
	if err == nil && made.Store != answer.Store {
		err = refuse("the running server holds another data folder: %s is not its own", string(s.folder))
	}
	for _, name := range answer.Files {
		files = append(files, s.folder.path(eventsDir, filepath.Base(name)))
	}
	return files, answer.Bucket, err
}

func (s *liveSource) intake() (intakeCopy, error) {
	answer, err := s.line.do(stepIntake)
	return intakeCopy{s.folder.path(filepath.Base(answer.Dir)), answer.Acknowledged}, err
}

func (s *liveSource) release() error {
	_, err := s.line.do(stepRelease)
	return err
}

func (s *liveSource) done() error {
	_, err := s.line.do(stepDone)
	return err
}

func (s *liveSource) busy(ctx context.Context, fn func(context.Context) error) error {
	return s.line.busy(ctx, fn)
}

func (s *liveSource) close() error { return s.line.rw.Close() }
