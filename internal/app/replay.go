package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/blobstore"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/replay"
	"github.com/actionpulse/actionpulse/internal/storage/replaystore"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// replaySweepInterval is how long a blob that nobody has may lie about once it
// is old enough.
const replaySweepInterval = time.Minute

// openBlobs opens where the chunks of recordings are kept. A folder of data from
// before there were recordings gets a folder for them; one whose recordings have
// lost their folder is refused, and so is serving one with another place than
// they are in, or with some left behind in the folder that they were in.
func (f folder) openBlobs(ctx context.Context, s *stores, p openParams) error {
	s3, err := p.Replay.S3()
	if err != nil {
		return err
	}
	name := "the folder " + replaysDir
	if s3 != nil {
		name, s.place = "the bucket "+s3.Bucket, bucketID(s3)
		s.blobs, err = openBucket(ctx, s3)
	} else {
		s.place = s.archives.Server()
		s.blobs, err = f.openReplays(ctx, s)
	}
	if err != nil || !p.Serving {
		return err
	}
	place, here, err := replay.Settle(ctx, replay.PlaceParams{Store: replaystore.New(s.sql), Blobs: s.blobs, Place: s.place})
	if err != nil {
		return fmt.Errorf("find out where session recordings are: %w", err)
	}
	if !here {
		return refuse("the session recordings of this database are not in %s: name the bucket that they are in by replay.blobs, the same for all servers; to move them, stop all servers and copy every file from where they are, the file %s too; if they are lost for good, have that file say %x",
			name, replay.PlaceName, place.ID)
	}
	if s3 != nil {
		return f.checkLeft()
	}
	return nil
}

// bucketID is the id of a bucket as a place: of whatever it is called by, but not
// of the address, under which it may have several.
func bucketID(s *config.S3) [16]byte {
	sum := sha256.Sum256([]byte(s.Bucket + "/" + strings.Trim(s.Prefix, "/")))
	return [16]byte(sum[:16])
}

// checkLeft refuses a folder of recordings that are in a bucket now: who is erased
// would be erased there, and stay here.
func (f folder) checkLeft() error {
	err := filepath.WalkDir(f.path(replaysDir), func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !entry.IsDir() && entry.Name() != replay.PlaceName {
			err = refuse("recordings are in a bucket, and %s still holds some that nothing deletes there: copy them to the bucket unless that is done, and remove %s", replaysDir, replaysDir)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrRefused) {
		return fmt.Errorf("look for recordings that were left behind: %w", err)
	}
	return err
}

// openReplays opens the folder of recordings. If there is none it is made, unless
// they must be in it.
func (f folder) openReplays(ctx context.Context, s *stores) (blobstore.Store, error) {
	store, err := blobstore.OpenFolder(f.path(replaysDir))
	if err == nil {
		return store, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	place, found, err := replaystore.New(s.sql).FindPlace(ctx)
	if err != nil {
		return nil, err
	}
	if found && place.ID == s.place {
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
		Store: replaystore.New(p.DB), Blobs: p.Blobs, Place: p.Place, Workers: workers, Alone: p.Database == "", Guard: p.ReplayGuard, Quota: p.ReplayQuota,
		Observer: replayObserver{p.Metrics.Intake}, Clock: p.Now, Random: rand.Reader, Log: p.Log,
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
