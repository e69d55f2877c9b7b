package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/actionpulse/actionpulse/internal/backup"
	"github.com/actionpulse/actionpulse/internal/blobstore"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/replay"
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
	// ReplaysElsewhere are in a bucket that was not named, or in the folder of
	// another server.
	ReplaysElsewhere = "elsewhere"
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
	Held  int64 `json:"held_ms"`
	Bytes int64 `json:"bytes"`
	// LostReplays counts chunks of session replays whose blobs are not where
	// they should be, and so are not in the backup either.
	LostReplays int64            `json:"lost_replays"`
	Manifest    *backup.Manifest `json:"manifest"`
}

// Backup copies a data folder, in the order event store, intake store,
// database, replays, of which each holds at least what the one before relies
// on. If a server holds the folder, it stands still as far as need be; nothing
// that it acknowledged before the backup began is missing from it. Errors wrap
// ErrRefused if the folder or the target cannot be used.
func Backup(ctx context.Context, p BackupParams) (r BackupReport, err error) {
	if err := realPaths(&p.Config.Data, &p.Out); err != nil {
		return r, err
	}
	f := folder(p.Config.Data)
	if _, err := f.readFormat(); err != nil {
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
	b := &backupRun{params: p, folder: f, source: s, report: &r, replays: replaysInFolder}
	if err := b.check(ctx); err != nil {
		return r, err
	}
	if b.writer, err = backup.Create(p.Out, p.Progress.of(need)); err != nil {
		return r, refuseTarget(err)
	}
	err = s.busy(ctx, b.copy)
	if err == nil {
		err = s.done()
	}
	if err != nil {
		return r, errors.Join(err, b.writer.Discard())
	}
	if r.Manifest, err = b.finish(); err != nil {
		return r, err
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
	made         format
	acknowledged uint64
	// replays is where they are, as the manifest says it.
	replays string
	// secretKey is where the key of secrets is, if not in the folder, as the
	// manifest says it.
	secretKey string
}

// check refuses, before anything stands still, what would be found out at its
// end: that a restore has begun before the folder was taken, that the database
// is another folder's, and that the key of its secrets is missing.
func (b *backupRun) check(ctx context.Context) (err error) {
	if b.made, err = b.folder.readFormat(); err != nil {
		return err
	}
	database, err := b.folder.snapshot(ctx, b.params)
	if err != nil {
		return err
	}
	return errors.Join(b.checkSecrets(ctx, database), database.Close())
}

// finish makes what was copied a backup, or removes it.
func (b *backupRun) finish() (*backup.Manifest, error) {
	return b.writer.Finish(backup.Manifest{
		CreatedAt: time.Now().UTC(), Program: b.params.Program, Store: b.made.Store, Database: databaseOf(b.params.Config.Database),
		SecretKey: b.secretKey, Replays: b.replays, LostReplays: b.report.LostReplays, Acknowledged: b.acknowledged,
	})
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
	database, err := b.folder.snapshot(ctx, b.params)
	if err != nil {
		return err
	}
	err = b.source.release()
	b.report.Held = time.Since(began).Milliseconds()
	if err == nil {
		err = b.rest(ctx, intake.Dir, database)
	}
	return errors.Join(err, database.Close())
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
func (b *backupRun) rest(ctx context.Context, intake string, database snapshotCopy) error {
	skipLock := func(path string) bool { return path == lockFile }
	if err := b.writer.CopyFolder(ctx, intake, backupData+"/"+intakeDir, skipLock); err != nil {
		return err
	}
	if err := b.marks(ctx, database.generation); err != nil {
		return err
	}
	if err := database.copy(ctx, b.writer); err != nil {
		return err
	}
	if err := b.checkSecrets(ctx, database); err != nil {
		return err
	}
	if err := b.blobs(ctx, database); err != nil {
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

// blobPage is how many names of blobs are read at once.
const blobPage = 1000

// blobs copies the blobs of the chunks that the copy of the database knows, and
// no other: a blob that no row of it names would never be deleted again. What is
// about to be written or deleted has no chunk, and its row needs no blob. Those
// that are lost are counted. Where the folder is not where the blobs are, none is
// looked for.
func (b *backupRun) blobs(ctx context.Context, database snapshotCopy) error {
	if b.replays == replaysInBucket {
		return nil
	}
	here, err := b.folder.holdsBlobs(ctx, database)
	if err != nil {
		return err
	}
	if !here {
		b.replays = ReplaysElsewhere
		return nil
	}
	for after, more := "", true; more; {
		names, err := database.ListReplayBlobs(ctx, after, blobPage)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := b.blob(ctx, name); err != nil {
				return err
			}
			after = name
		}
		more = len(names) == blobPage
	}
	mark := replaysDir + "/" + replay.PlaceName
	return b.writer.CopyIfThere(ctx, b.folder.path(filepath.FromSlash(mark)), backupData+"/"+mark)
}

// holdsBlobs says whether the folder of recordings is the place that holds the
// blobs, or none does yet.
func (f folder) holdsBlobs(ctx context.Context, database snapshotCopy) (bool, error) {
	place, found, err := database.FindReplayPlace(ctx)
	if err != nil || !found {
		return !found && err == nil, err
	}
	blobs, err := blobstore.OpenFolder(f.path(replaysDir))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mark, err := replay.MarkIn(ctx, blobs)
	return mark == place, errors.Join(err, blobs.Close())
}

func (b *backupRun) blob(ctx context.Context, name string) error {
	at := replaysDir + "/" + name
	err := b.writer.Copy(ctx, b.folder.path(filepath.FromSlash(at)), backupData+"/"+at)
	if errors.Is(err, os.ErrNotExist) {
		b.report.LostReplays++
		return nil
	}
	return err
}

// write writes a small file that is not copied.
func (b *backupRun) write(ctx context.Context, name string, write func(path string) error) error {
	path, err := b.writer.Path(backupData + "/" + name)
	if err != nil {
		return err
	}
	if err := write(path); err != nil {
		return err
	}
	return b.writer.Add(ctx, backupData+"/"+name)
}

// marks writes what was acknowledged when the intake store was copied, and the
// generation that the copy of the database knows: the folder is ahead by now.
func (b *backupRun) marks(ctx context.Context, g sqldb.Generation) error {
	err := b.write(ctx, markFile, func(path string) error { return intakestore.WriteMark(path, b.acknowledged) })
	if err != nil || g == (sqldb.Generation{}) {
		return err
	}
	return b.write(ctx, generationFile, func(path string) error { return writeGeneration(path, g) })
}

// snapshotCopy is a snapshot of the database, which may be in use.
type snapshotCopy struct {
	*sqldb.Snapshot

	name, tool string
	// generation is the folder's as the snapshot knows it, zero if it has none.
	generation sqldb.Generation
}

// snapshot takes a snapshot of the database, if it is this folder's.
func (f folder) snapshot(ctx context.Context, p BackupParams) (c snapshotCopy, err error) {
	made, err := f.readFormat()
	if err != nil {
		return c, err
	}
	identity, err := made.identity()
	if err != nil {
		return c, err
	}
	c = snapshotCopy{name: backupData + "/" + sqliteFile, tool: p.DumpTool}
	hint := "restore " + sqliteFile + " from a backup of this folder; if the accounts are in PostgreSQL, say the same --database as the server"
	if p.Config.Database != "" {
		c.name, hint = backupDump, "say the same --database as the server"
	}
	if c.generation, err = f.readGeneration(); err != nil {
		return c, err
	}
	c.Snapshot, err = sqldb.OpenSnapshot(ctx, f.sqlOptions(p.Config.Database))
	switch {
	case errors.Is(err, sqldb.ErrMissing), errors.Is(err, sqldb.ErrNewer):
		return c, refuse("the accounts: %w; %s", err, hint)
	case err != nil:
		return c, err
	case c.Identity() != identity:
		return c, errors.Join(refuse("the accounts belong to another data folder: %s", hint), c.Close())
	}
	if err := checkGeneration(ctx, c, c.generation, hint); err != nil {
		return c, errors.Join(err, c.Close())
	}
	return c, nil
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
