package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/actionpulse/actionpulse/internal/backup"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
)

// source is a data folder that stands still for a backup, part by part: first
// events, then intake, then database. What was returned stands still until
// close, only the event store until release.
type source interface {
	// events returns the files of the event store, and whether replays are in a
	// bucket.
	events() (files []string, bucket bool, err error)
	intake() (intakeCopy, error)
	database(ctx context.Context) (databaseCopy, error)
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
		return &stoppedSource{folder: f, params: p, lock: lock}, nil
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

// stoppedSource is a folder that nobody serves. Nothing of it is opened, so
// nothing is changed: a folder that an earlier version made, or one that a
// killed process left behind, is copied as it is.
type stoppedSource struct {
	folder folder
	params BackupParams
	lock   *flock.Flock
}

func (s *stoppedSource) events() (files []string, bucket bool, err error) {
	s3, err := s.params.Config.Replay.S3()
	return eventstore.FilesOf(s.folder.path(eventsDir, eventsFile)), s3 != nil, err
}

func (s *stoppedSource) intake() (intakeCopy, error) {
	acknowledged, err := intakestore.Acknowledged(s.folder.intakeOptions(s.params.Log, nil))
	if err != nil {
		return intakeCopy{}, refuse("%s cannot be copied: %w; %s", intakeDir, err, s.folder.repairHint())
	}
	return intakeCopy{s.folder.path(intakeDir), acknowledged}, nil
}

func (s *stoppedSource) database(ctx context.Context) (databaseCopy, error) {
	if s.params.Config.Database != "" {
		return s.folder.snapshot(ctx, s.params)
	}
	if _, err := os.Stat(s.folder.path(sqliteFile)); err != nil {
		return nil, refuse("the accounts: %w", err)
	}
	return filesCopy{s.folder}, nil
}

func (s *stoppedSource) release() error { return nil }

func (s *stoppedSource) done() error { return nil }

func (s *stoppedSource) busy(ctx context.Context, fn func(context.Context) error) error {
	return fn(ctx)
}

func (s *stoppedSource) close() error { return s.lock.Unlock() }

// filesCopy is SQLite's file that nobody has open, with the log that a killed
// process has left.
type filesCopy struct{ folder folder }

func (c filesCopy) copy(ctx context.Context, w *backup.Writer) error {
	if err := w.Copy(ctx, c.folder.path(sqliteFile), backupData+"/"+sqliteFile); err != nil {
		return err
	}
	const log = sqliteFile + "-wal"
	return w.CopyIfThere(ctx, c.folder.path(log), backupData+"/"+log)
}

func (filesCopy) close() error { return nil }

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

func (s *liveSource) database(ctx context.Context) (databaseCopy, error) {
	return s.folder.snapshot(ctx, s.params)
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
