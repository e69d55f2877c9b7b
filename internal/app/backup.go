package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/backup"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// What a backup holds beside its manifest: the files of the data folder by
// their own names, and the dump of a database that is not in the folder.
const (
	backupData = "data"
	backupDump = "database.dump"
)

// replaysDir is where chunks of session replays are, unless they are in a
// bucket.
const replaysDir = "replays"

// The words of a manifest.
const (
	databaseSQLite   = "sqlite"
	databasePostgres = "postgresql"
	replaysInFolder  = "folder"
	replaysInBucket  = "bucket"
)

// BackupParams say what to copy where.
type BackupParams struct {
	Config config.Folder
	// Out is the folder that gets the backup: absent, or empty.
	Out string
	// DumpTool is the program pg_dump; empty means the one in PATH.
	DumpTool string
	// Program is the version of this program.
	Program  string
	Progress Progress
	Log      *slog.Logger
}

// Progress is told how many bytes of about how many have been copied, and
// which file is being copied.
type Progress func(path string, done, all int64)

// of returns what counts the bytes of files towards a sum.
func (p Progress) of(all int64) backup.Progress {
	if p == nil {
		return nil
	}
	return func(path string, bytes int64) { p(path, bytes, max(all, bytes)) }
}

// BackupReport says what was done.
type BackupReport struct {
	// Online says that a server was asked to stand still.
	Online bool `json:"online"`
	// Held is how long no event became visible, in milliseconds; intake went on.
	Held     int64            `json:"held_ms"`
	Bytes    int64            `json:"bytes"`
	Manifest *backup.Manifest `json:"manifest"`
}

// Backup copies a data folder, in the order event store, intake store,
// database, replays, of which each holds at least what the one before relies
// on. If a server holds the folder, it stands still as far as need be; nothing
// that it acknowledged before the backup began is missing from it. Errors wrap
// ErrRefused if the folder or the target cannot be used.
func Backup(ctx context.Context, p BackupParams) (r BackupReport, err error) {
	f := folder(p.Config.Data)
	made, err := f.readFormat()
	if err != nil {
		return r, err
	}
	need, err := f.checkTarget(p.Out)
	if err != nil {
		return r, err
	}
	s, err := f.openSource(ctx, p)
	if err != nil {
		return r, err
	}
	_, r.Online = s.(*liveSource)
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := backup.Create(p.Out, p.Progress.of(need))
	if err != nil {
		return r, refuseTarget(err)
	}
	b := &backupRun{params: p, folder: f, source: s, writer: w, report: &r, replays: replaysInFolder}
	err = s.busy(ctx, b.copy)
	if err == nil {
		err = s.done()
	}
	if err != nil {
		return r, errors.Join(err, w.Discard())
	}
	r.Manifest, err = w.Finish(backup.Manifest{
		CreatedAt: time.Now().UTC(), Program: p.Program, Store: made.Store, Database: databaseOf(p.Config.Database),
		Replays: b.replays, Acknowledged: b.acknowledged,
	})
	if err != nil {
		return r, errors.Join(err, w.Discard())
	}
	r.Bytes = r.Manifest.Bytes()
	return r, nil
}

func databaseOf(url config.DatabaseURL) string {
	if url == "" {
		return databaseSQLite
	}
	return databasePostgres
}

// backupRun is a backup under way.
type backupRun struct {
	params       BackupParams
	folder       folder
	source       source
	writer       *backup.Writer
	report       *BackupReport
	acknowledged uint64
	// replays is where they are, as the manifest says it.
	replays string
}

// copy copies everything, and lets the server go on as soon as the parts
// belong together.
func (b *backupRun) copy(ctx context.Context) error {
	began := time.Now()
	if err := b.events(ctx); err != nil {
		return err
	}
	intake, err := b.source.intake()
	if err != nil {
		return err
	}
	b.acknowledged = intake.Acknowledged
	database, err := b.source.database(ctx)
	if err != nil {
		return err
	}
	err = b.source.release()
	b.report.Held = time.Since(began).Milliseconds()
	if err == nil {
		err = b.rest(ctx, intake.Dir, database)
	}
	return errors.Join(err, database.close())
}

func (b *backupRun) events(ctx context.Context) error {
	files, bucket, err := b.source.events()
	if err != nil {
		return err
	}
	if bucket {
		b.replays = replaysInBucket
	}
	for _, path := range files {
		if err := b.writer.Copy(ctx, path, backupData+"/"+eventsDir+"/"+filepath.Base(path)); err != nil {
			return err
		}
	}
	crash.Point("backup.copied")
	return nil
}

// rest copies what stands still by itself now.
func (b *backupRun) rest(ctx context.Context, intake string, database databaseCopy) error {
	skipLock := func(path string) bool { return path == lockFile }
	if err := b.writer.CopyFolder(ctx, intake, backupData+"/"+intakeDir, skipLock); err != nil {
		return err
	}
	if err := b.mark(ctx); err != nil {
		return err
	}
	if err := database.copy(ctx, b.writer); err != nil {
		return err
	}
	if err := b.blobs(ctx); err != nil {
		return err
	}
	// Archives are not copied, since they expire; who began a job is.
	for _, name := range []string{settings, secretKeyFile, exportsDir + "/" + privacy.ServerFile} {
		if err := b.writer.CopyIfThere(ctx, b.folder.path(name), backupData+"/"+name); err != nil {
			return err
		}
	}
	return b.writer.Copy(ctx, b.folder.path(formatFile), backupData+"/"+formatFile)
}

// blobs copies the chunks of replays: the copy of the database is older than
// this one, so each that it knows is there.
func (b *backupRun) blobs(ctx context.Context) error {
	if b.replays == replaysInBucket {
		return nil
	}
	unfinished := func(path string) bool { return strings.HasSuffix(path, atomicfile.Temporary("")) }
	from := b.folder.path(replaysDir)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return nil // from before there were recordings; a restore refuses it if there are
	}
	return b.writer.CopyFolder(ctx, from, backupData+"/"+replaysDir, unfinished)
}

// mark writes what was acknowledged when the intake store was copied.
func (b *backupRun) mark(ctx context.Context) error {
	path, err := b.writer.Path(backupData + "/" + markFile)
	if err != nil {
		return err
	}
	if err := intakestore.WriteMark(path, b.acknowledged); err != nil {
		return err
	}
	return b.writer.Add(ctx, backupData+"/"+markFile)
}

// databaseCopy is the database of the folder, standing still.
type databaseCopy interface {
	copy(ctx context.Context, w *backup.Writer) error
	close() error
}

// snapshotCopy is a snapshot of a database that is in use.
type snapshotCopy struct {
	*sqldb.Snapshot

	name, tool string
}

func (f folder) snapshot(ctx context.Context, p BackupParams) (databaseCopy, error) {
	s, err := sqldb.OpenSnapshot(ctx, f.sqlOptions(p.Config.Database))
	if errors.Is(err, sqldb.ErrMissing) {
		return nil, refuse("the accounts: %w", err)
	}
	if err != nil {
		return nil, err
	}
	name := backupData + "/" + sqliteFile
	if p.Config.Database != "" {
		name = backupDump
	}
	return snapshotCopy{s, name, p.DumpTool}, nil
}

func (c snapshotCopy) copy(ctx context.Context, w *backup.Writer) error {
	path, err := w.Path(c.name)
	if err != nil {
		return err
	}
	if err := c.CopyTo(ctx, sqldb.CopyParams{Path: path, Tool: c.tool}); err != nil {
		return err
	}
	return w.Add(ctx, c.name)
}

func (c snapshotCopy) close() error { return c.Close() }
