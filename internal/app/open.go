package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gofrs/flock"

	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/blobstore"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// stores are the open parts of a data folder.
type stores struct {
	lock   *flock.Flock
	sql    *sqldb.DB
	events *eventstore.Store
	intake *intakestore.Store
	blobs  blobstore.Store
	// archives are those of exports. place is the id of the folder or bucket that
	// the blobs are in.
	archives *privacy.Archives
	place    [16]byte
}

// openParams say how to open a folder.
type openParams struct {
	Database   config.DatabaseURL
	EventStore config.EventStore
	Replay     config.Replay
	Log        *slog.Logger
	Fatal      func(error)
	// Restoring opens a folder whose restore has not been finished, NoBlobs one
	// without its replays.
	Restoring, NoBlobs bool
	// Serving opens a folder to take in and delete what is in it.
	Serving bool
}

// open locks the folder, opens its parts and refuses those that do not belong
// together. It never creates a part: an empty intake store beside stored
// events would take every repeat for a new event.
func (f folder) open(ctx context.Context, p openParams) (*stores, error) {
	s, identity, err := f.openAccounts(ctx, p)
	if err != nil {
		return nil, err
	}
	// Both stores may have a log to go through: they do it at the same time.
	intake := make(chan error, 1)
	go func() {
		var err error
		s.intake, err = f.openIntake(p, identity)
		intake <- err
	}()
	err = f.openEvents(ctx, s, p, identity)
	if err := errors.Join(err, <-intake); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := f.checkPositions(ctx, s); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.archives, err = privacy.OpenArchives(f.path(exportsDir), rand.Reader); err == nil && !p.NoBlobs {
		err = f.openBlobs(ctx, s, p)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openBase opens everything but the intake store and the blobs.
func (f folder) openBase(ctx context.Context, p openParams) (*stores, [16]byte, error) {
	s, identity, err := f.openAccounts(ctx, p)
	if err != nil {
		return nil, identity, err
	}
	if err := f.openEvents(ctx, s, p, identity); err != nil {
		return nil, identity, errors.Join(err, s.close())
	}
	return s, identity, nil
}

// openAccounts locks the folder and opens the accounts.
func (f folder) openAccounts(ctx context.Context, p openParams) (*stores, [16]byte, error) {
	read := f.readFormat
	if p.Restoring {
		read = f.readAnyFormat
	}
	made, err := read()
	if err != nil {
		return nil, [16]byte{}, err
	}
	identity, err := made.identity()
	if err != nil {
		return nil, identity, err
	}
	s := &stores{}
	if s.lock, err = f.lock(); err != nil {
		return nil, identity, err
	}
	if err := f.upgradeFormat(made); err != nil {
		return nil, identity, errors.Join(err, s.close())
	}
	if err := f.openSQL(ctx, s, p, identity); err != nil {
		return nil, identity, errors.Join(err, s.close())
	}
	return s, identity, nil
}

func (f folder) openSQL(ctx context.Context, s *stores, p openParams, identity [16]byte) error {
	generation, err := f.readGeneration()
	if err != nil {
		return err
	}
	s.sql, err = sqldb.Open(ctx, f.sqlOptions(p.Database))
	switch {
	case errors.Is(err, sqldb.ErrMissing), errors.Is(err, sqldb.ErrNewer), errors.Is(err, sqldb.ErrChanged):
		return refuse("the accounts: %w", err)
	case err != nil:
		return err
	case s.sql.Identity() != identity:
		return refuse("the accounts belong to another data folder: restore the database that was backed up with this folder")
	default:
		return checkGeneration(ctx, s.sql, generation, generationHint)
	}
}

func (f folder) openEvents(ctx context.Context, s *stores, p openParams, identity [16]byte) error {
	events, err := eventstore.Open(ctx, eventstore.Options{
		Path: f.path(eventsDir, eventsFile), MemoryLimit: int64(p.EventStore.MemoryLimit),
		Threads: p.EventStore.Threads, Log: p.Log,
	})
	if err != nil {
		return refuse("%s cannot be opened: %w; restore %s from a backup of this folder", eventsDir, err, eventsDir)
	}
	s.events = events
	mark, err := events.Mark(ctx)
	if err != nil {
		return err
	}
	if mark.Store != identity {
		return refuse("%s belongs to another data folder: restore the one that was backed up with this folder", eventsDir)
	}
	newest, err := s.sql.MaxProjectNumber(ctx)
	if err != nil {
		return err
	}
	if mark.MaxProject > newest {
		return refuse("%s holds events of project number %d, which the accounts do not know: the database is older than the events", eventsDir, mark.MaxProject)
	}
	return nil
}

func (f folder) openIntake(p openParams, identity [16]byte) (*intakestore.Store, error) {
	intake, err := intakestore.Open(f.intakeOptions(p.Log, p.Fatal))
	if err != nil {
		return nil, refuse("%s cannot be used: %w; %s", intakeDir, err, f.repairHint())
	}
	if intake.Identity() != identity {
		return nil, errors.Join(refuse("%s belongs to another data folder; %s", intakeDir, f.repairHint()), intake.Close())
	}
	return intake, nil
}

// checkPositions refuses stores of different age: what the one has forgotten
// as stored, the other must hold.
func (f folder) checkPositions(ctx context.Context, s *stores) error {
	mark, err := s.events.Mark(ctx)
	if err != nil {
		return err
	}
	last := s.intake.State().Last
	if mark.Position > last {
		return refuse("%s is older than %s: it ends at position %d, and %d is stored; %s",
			intakeDir, eventsDir, last, mark.Position, f.repairHint())
	}
	first, err := s.intake.First()
	if err != nil {
		return err
	}
	if first > mark.Position+1 {
		return refuse("%s is older than %s: positions %d to %d are in neither; restore the %s that was in use last, or give those events up with: actionpulse repair --accept-loss --data %s",
			eventsDir, intakeDir, mark.Position+1, first-1, eventsDir, string(f))
	}
	return nil
}

func (s *stores) audit() audit.Stores { return audit.Stores{Intake: s.intake, Events: s.events} }

// close closes what is open, the lock last.
func (s *stores) close() error {
	var errs []error
	if s.events != nil {
		errs = append(errs, s.events.Close())
	}
	if s.intake != nil {
		errs = append(errs, s.intake.Close())
	}
	if s.blobs != nil {
		errs = append(errs, s.blobs.Close())
	}
	if s.sql != nil {
		errs = append(errs, s.sql.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Unlock())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the data folder: %w", err)
	}
	return nil
}
