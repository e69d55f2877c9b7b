package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/backup"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// RestoreParams say what to restore where.
type RestoreParams struct {
	// From is the backup.
	From string
	// Data is the new data folder: absent or empty, or one whose restore was cut
	// short.
	Data string
	// Database is an empty database of PostgreSQL, for a backup with a dump.
	Database config.DatabaseURL
	// Replay is the bucket of a backup that does not hold the replays; without it
	// they are not compared.
	Replay config.Replay
	// SecretKey is the key of secrets, for a backup that does not hold it.
	SecretKey config.SecretKey
	// LoadTool is the program pg_restore; empty means the one in PATH.
	LoadTool string
	Progress Progress
	Log      *slog.Logger
}

// RestoreReport says what was restored.
type RestoreReport struct {
	Manifest *backup.Manifest `json:"manifest"`
	Verify   audit.Report     `json:"verify"`
	// ReplaysUnseen says that replays are in a bucket that was not named, or in the
	// folder of another server, and were not looked at.
	ReplaysUnseen bool `json:"replays_unseen"`
}

// Restore makes a data folder of a backup, opens it as a server would, and
// compares its parts. Until it returns without an error, no server starts on
// the folder, and it can be restored again. Errors wrap ErrRefused if the backup
// or the target cannot be used, or the parts do not belong together. A
// difference that verify finds is in the report, and keeps no server from
// starting: the files are those of the backup, so what was backed up differed,
// and was served, too.
func Restore(ctx context.Context, p RestoreParams) (r RestoreReport, err error) {
	if err := realPaths(&p.From, &p.Data); err != nil {
		return r, err
	}
	if r.Manifest, err = backup.Open(p.From); err != nil {
		return r, refuseBackup(err)
	}
	if err := checkAround(p.Data); err != nil {
		return r, err
	}
	if err := errors.Join(p.checkDatabase(r.Manifest), p.checkReplays(r.Manifest)); err != nil {
		return r, err
	}
	r.ReplaysUnseen = p.replaysUnseen(r.Manifest)
	if err := checkSpace(p.Data, r.Manifest.Bytes()); err != nil {
		return r, err
	}
	f := folder(p.Data)
	if err := f.fill(ctx, p, r.Manifest); err != nil {
		return r, err
	}
	crash.Point("restore.filled")
	if r.Verify, err = f.tryOut(ctx, p, r.Manifest); err != nil {
		return r, err
	}
	if err := os.Remove(f.path(restoreFile)); err != nil {
		return r, fmt.Errorf("finish the restore: %w", err)
	}
	return r, syncDir(p.Data)
}

// refuseBackup gives a backup that cannot be used the exit code of a folder
// that cannot.
func refuseBackup(err error) error {
	for _, known := range []error{backup.ErrIncomplete, backup.ErrDamaged, backup.ErrNewer, backup.ErrOccupied} {
		if errors.Is(err, known) {
			return refuse("%w", err)
		}
	}
	return err
}

// checkDatabase refuses a database for a backup without a dump, and none for
// one with.
func (p RestoreParams) checkDatabase(m *backup.Manifest) error {
	switch {
	case m.Database == databasePostgres && p.Database == "":
		return refuse("the backup holds a dump of PostgreSQL: name an empty database by --database")
	case m.Database == databaseSQLite && p.Database != "":
		return refuse("the backup holds SQLite's file: restore it without --database")
	case m.Database != databasePostgres && m.Database != databaseSQLite:
		return refuse("the backup names a database %q, which this version does not know", m.Database)
	}
	return nil
}

// checkReplays refuses a bucket for a backup that holds the replays: a server
// would look for them there.
func (p RestoreParams) checkReplays(m *backup.Manifest) error {
	switch {
	case m.Replays == replaysInFolder && p.Replay.Blobs != "":
		return refuse("the backup holds the session replays themselves: restore it without --replay.blobs")
	case m.Replays != replaysInFolder && m.Replays != replaysInBucket && m.Replays != ReplaysElsewhere:
		return refuse("the backup says that replays are in a %q, which this version does not know", m.Replays)
	}
	return nil
}

func (p RestoreParams) replaysUnseen(m *backup.Manifest) bool {
	return m.Replays != replaysInFolder && p.Replay.Blobs == ""
}

// fill puts everything of a backup into the folder and the database.
func (f folder) fill(ctx context.Context, p RestoreParams, m *backup.Manifest) (err error) {
	lock, err := f.lockTarget()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	state, err := f.beginRestore(m)
	if err != nil {
		return err
	}
	// Files are copied and compared before the database is touched.
	err = backup.Extract(ctx, backup.ExtractParams{
		From: p.From, Manifest: m, Prefix: backupData + "/", To: string(f), Progress: p.Progress.of(m.Bytes()),
	})
	if err != nil {
		return errors.Join(refuseBackup(err), f.clear())
	}
	if err := f.ensureBlobs(m); err != nil {
		return err
	}
	crash.Point("restore.copied")
	if err := f.pointTo(p.Database); err != nil {
		return err
	}
	if p.Database == "" {
		return nil
	}
	return f.fillDatabase(ctx, p, m, state)
}

// ensureBlobs makes the folder of replays for a backup without any: no chunk was
// recorded, or each is lost, as verify will say.
func (f folder) ensureBlobs(m *backup.Manifest) error {
	if m.Replays == replaysInBucket {
		return nil
	}
	if _, err := os.Stat(f.path(replaysDir)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return f.makeBlobs()
}

// fillDatabase loads the dump into a database that is empty, or that an earlier
// restore of this folder has filled: the dump is loaded whole or not at all.
func (f folder) fillDatabase(ctx context.Context, p RestoreParams, m *backup.Manifest, state restoring) error {
	if err := backup.Check(ctx, p.From, m, backupDump); err != nil {
		return errors.Join(refuseBackup(err), f.clear())
	}
	ours := checksum(string(p.Database))
	err := sqldb.CheckEmpty(ctx, string(p.Database))
	switch {
	case errors.Is(err, sqldb.ErrExists) && state.Database == ours:
		return nil
	case errors.Is(err, sqldb.ErrExists), errors.Is(err, sqldb.ErrNotEmpty):
		return errors.Join(refuse("%w: name an empty database", err), f.clear())
	case err != nil:
		return errors.Join(err, f.clear())
	}
	state.Database = ours
	if err := f.noteRestore(state); err != nil {
		return err
	}
	crash.Point("restore.noted")
	err = sqldb.LoadDump(ctx, sqldb.LoadParams{
		URL: string(p.Database), Path: filepath.Join(p.From, backupDump), Tool: p.LoadTool,
	})
	if err != nil {
		return errors.Join(err, f.clear())
	}
	crash.Point("restore.loaded")
	return nil
}

// tryOut opens the folder with all checks of a start, and compares its parts.
func (f folder) tryOut(ctx context.Context, p RestoreParams, m *backup.Manifest) (audit.Report, error) {
	s, err := f.open(ctx, openParams{Database: p.Database, Replay: p.Replay, Log: p.Log, Restoring: true, NoBlobs: p.replaysUnseen(m)})
	if err != nil {
		return audit.Report{}, err
	}
	if err := f.checkRestoredKey(ctx, p.SecretKey, s); err != nil {
		return audit.Report{}, errors.Join(err, s.close())
	}
	report, err := s.verify(ctx, ledger.AuditParams{})
	return report, errors.Join(err, s.close())
}

// checkRestoredKey refuses a folder that no server could read the secrets of,
// unless it is given the key; the folder's own settings may have it.
func (f folder) checkRestoredKey(ctx context.Context, setting config.SecretKey, s *stores) (err error) {
	if setting == "" {
		if setting, err = f.settingsKey(); err != nil {
			return err
		}
	}
	return f.checkCipher(ctx, setting, sqlstore.New(s.sql).SecretKeyIDs)
}
