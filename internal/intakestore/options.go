package intakestore

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// format pins what the engine writes, so that an upgrade of the library
	// does not silently change the folder.
	format = pebble.FormatTableFormatV6

	// minSyncInterval spaces syncs out under load, so that more requests share
	// one; the first one after a pause is not held up.
	minSyncInterval = 500 * time.Microsecond

	memTableSize = 64 << 20
	blockSize    = 16 << 10

	// DefaultCacheBytes is the block cache used when Options.CacheBytes is 0.
	DefaultCacheBytes = 128 << 20

	minSegmentIDs = 64 << 10
	maxSegmentIDs = 4 << 20
	// maxSegmentSpan is the longest time one segment covers; a quarter of the
	// window if that is shorter, so that claims are dropped soon after they
	// have expired.
	maxSegmentSpan = 12 * time.Hour
	minSegmentSpan = time.Second
)

// Options say how to open a store.
type Options struct {
	Dir string
	// Mark is the path of the file that holds the last position acknowledged.
	Mark string
	// CacheBytes bounds the block cache; 0 means DefaultCacheBytes.
	CacheBytes int64
	// Repair opens a store whose rebuild was cut short, or which lacks what
	// was acknowledged. Until Rebuild has returned it opens only so.
	Repair bool
	Log    *slog.Logger
	// Fatal is called when the engine can no longer tell what is on disk. It
	// must end the process and not return.
	Fatal func(err error)
}

// files is what the engine says of its files.
type files struct {
	// log is the number of the newest write-ahead log.
	log atomic.Uint64
	// deleted holds a token when a file was deleted.
	deleted chan struct{}
}

func newFiles() *files { return &files{deleted: make(chan struct{}, 1)} }

func (f *files) gone() {
	select {
	case f.deleted <- struct{}{}:
	default:
	}
}

// pebble returns the engine's options. Damage found while the store is not
// ready yet is left to the check that Open makes; later it is fatal.
func (o Options) pebble(ready *atomic.Bool, f *files) *pebble.Options {
	cache := o.CacheBytes
	if cache == 0 {
		cache = DefaultCacheBytes
	}
	opts := &pebble.Options{
		FormatMajorVersion:          format,
		CacheSize:                   cache,
		MemTableSize:                memTableSize,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       math.MaxInt32, // never stop intake; the backlog is bounded by disk space
		BytesPerSync:                1 << 20,
		WALMinSyncInterval:          func() time.Duration { return minSyncInterval },
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      logger{o.Log, o.Fatal},
		EventListener: &pebble.EventListener{
			WALCreated:      func(info pebble.WALCreateInfo) { f.log.Store(uint64(info.FileNum)) },
			TableDeleted:    func(pebble.TableDeleteInfo) { f.gone() },
			BackgroundError: func(err error) { o.Log.Error("intake store: background work failed", "error", err) },
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				err := fmt.Errorf("%w: %s: %w", ErrDamaged, info.Path, info.Details)
				if ready.Load() {
					o.Fatal(err)
				}
				o.Log.Error("intake store: damage found", "error", err)
			},
		},
	}
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	for i := range opts.Levels {
		opts.Levels[i].BlockSize = blockSize
	}
	return opts
}

// logger passes the engine's words on and turns its fatal errors, after which
// it must not go on, into ours.
type logger struct {
	log   *slog.Logger
	fatal func(error)
}

func (l logger) Infof(format string, args ...any) {
	l.log.Debug("intake store: " + fmt.Sprintf(format, args...))
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("intake store: " + fmt.Sprintf(format, args...))
}

func (l logger) Fatalf(format string, args ...any) {
	l.fatal(fmt.Errorf("intake store: "+format, args...))
	panic("intake store: a fatal error was survived")
}

// EngineFormat names the format of the engine's files.
func EngineFormat() string { return fmt.Sprintf("pebble %d", format) }
