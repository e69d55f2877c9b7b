package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/blobstore"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/replaystore"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// replaySweepInterval is how long a blob that nobody has may lie about once it
// is old enough.
const replaySweepInterval = time.Minute

// openBlobs opens where the chunks of recordings are kept. A folder of data from
// before there were recordings gets a folder for them; one whose recordings have
// lost their folder is refused, and so is serving one when that of another server
// has them.
func (f folder) openBlobs(ctx context.Context, s *stores, p openParams) error {
	s3, err := p.Replay.S3()
	if err != nil {
		return err
	}
	if s3 != nil {
		s.blobs, err = openBucket(ctx, s3)
		return err
	}
	if p.Database != "" { // others may share it
		s.home = s.archives.Server()
	}
	elsewhere, err := s.replaysElsewhere(ctx)
	if err != nil {
		return err
	}
	if elsewhere && p.Serving {
		return refuse("session recordings are kept in the folder of another server of this database: have all of its servers keep them in a bucket, named by replay.blobs; if this is the folder that holds them, restore %s/%s from a backup of it",
			exportsDir, privacy.ServerFile)
	}
	s.blobs, err = f.openReplays(ctx, s.sql, elsewhere)
	return err
}

// replaysElsewhere says whether the folder of another server holds the blobs.
func (s *stores) replaysElsewhere(ctx context.Context) (bool, error) {
	if s.home == ([16]byte{}) {
		return false, nil
	}
	holder, found, err := replaystore.New(s.sql).FindFolder(ctx)
	return found && holder != s.home, err
}

// openReplays opens the folder of recordings. If there is none it is made, unless
// chunks must be in it.
func (f folder) openReplays(ctx context.Context, db *sqldb.DB, elsewhere bool) (blobstore.Store, error) {
	store, err := blobstore.OpenFolder(f.path(replaysDir))
	if err == nil {
		return store, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	chunks, err := replaystore.New(db).ListBlobs(ctx, "", 1)
	if err != nil {
		return nil, err
	}
	if len(chunks) > 0 && !elsewhere {
		return nil, refuse("%s is missing, and there are session recordings: restore it from a backup of this folder, or set replay.blobs to where they are", replaysDir)
	}
	if err := f.makeBlobs(); err != nil {
		return nil, err
	}
	if store, err = blobstore.OpenFolder(f.path(replaysDir)); err != nil {
		return nil, err
	}
	return store, nil
}

// openBucket makes sure that the bucket can be used.
func openBucket(ctx context.Context, s *config.S3) (blobstore.Store, error) {
	bucket, err := blobstore.OpenS3(blobstore.S3Options{
		Endpoint: s.Endpoint, Region: s.Region, Bucket: s.Bucket, Prefix: s.Prefix, AccessKey: s.AccessKey, SecretKey: string(s.SecretKey),
	})
	if err != nil {
		return nil, err
	}
	if err := bucket.Check(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("replay.blobs: %w", err), bucket.Close())
	}
	return bucket, nil
}

// makeBlobs makes the folder of recordings and returns once it is on disk.
func (f folder) makeBlobs() error {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return fmt.Errorf("make the folder %s: %w", replaysDir, err)
	}
	err = root.Mkdir(replaysDir, 0o700)
	if err == nil {
		err = atomicfile.SyncFolder(root, ".")
	}
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("make the folder %s: %w", replaysDir, err)
	}
	return nil
}

// newReplays returns the service of recordings, which must be closed.
func newReplays(p servicesParams) (*replay.Service, error) {
	workers := movementWorkers
	if p.Database == "" {
		workers = 1 // SQLite has one writer
	}
	return replay.NewService(replay.Params{
		Store: replaystore.New(p.DB), Blobs: p.Blobs, Server: p.Home, Workers: workers, Alone: p.Database == "", Guard: p.ReplayGuard, Quota: p.ReplayQuota,
		Observer: replayObserver{p.Metrics.Intake}, Clock: time.Now, Random: rand.Reader, Log: p.Log,
	})
}

// guardReplays refuses recordings when intake refuses events: also while the
// machine's clock is not believed, by which they are booked to a month and kept.
func (s *server) guardReplays() error {
	if err := s.space.guard(); err != nil {
		return err
	}
	return s.intake.CheckClock()
}

// replayObserver counts chunks as items of intake.
type replayObserver struct{ metrics *telemetry.Intake }

func (o replayObserver) Chunk(r replay.Receipt) {
	count := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	o.metrics.Judged(1, count(r.Duplicate), count(r.Conflict))
}

// sweepReplays deletes blobs that nobody has, at once and then every minute.
func (s *services) sweepReplays(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(replaySweepInterval)
	defer ticker.Stop()
	for {
		if n, err := s.replays.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("blobs of session recordings that nobody has are still there", "deleted", n, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
