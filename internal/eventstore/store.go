// Package eventstore owns the stored events: rows, the links between persons,
// their traits and the position up to which the log has been applied, all in
// one DuckDB file and always in one transaction. It is the only package that
// uses DuckDB. It never decides whether an event is a duplicate, and it never
// changes an event row.
//
// Invariants:
//   - the rows, links, traits and quarantined items are exactly those of the
//     log's positions 1 … mark, less what erasures and retention have taken;
//   - the claim of a row that was taken stays until its window has passed;
//   - what was used is counted in the transaction that stores it, and never
//     taken back;
//   - a commit that returned is on disk;
//   - a pair of ids once linked keeps its first time for ever;
//   - there is one writer; readers see the state of one commit.
package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/identity"
	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	// DefaultMemoryLimit is what DuckDB may use for buffers, in bytes.
	DefaultMemoryLimit = 2 << 30
	// DefaultCheckpointBytes is the size of the write-ahead log past which
	// Apply checkpoints. At four times this size a writer stalls noticeably.
	DefaultCheckpointBytes = 128 << 20
	// DefaultReaders is how many queries run at once; others wait.
	DefaultReaders = 4
)

// Options say how to open a store. Path is required.
type Options struct {
	// Path of the database file, which must exist.
	Path string
	// MemoryLimit in bytes; 0 means DefaultMemoryLimit.
	MemoryLimit int64
	// Threads that one query may use; 0 means half the processors, at least
	// one. DuckDB's threads wait for one another by spinning: with two threads
	// on two processors a batch costs the writer half as much again.
	Threads int
	// TempDir is where large queries spill to; empty means Path + ".tmp".
	TempDir string
	// CheckpointBytes as in DefaultCheckpointBytes; 0 means that.
	CheckpointBytes int64
	// Readers is how many queries run at once; 0 means DefaultReaders.
	Readers int
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
	// Fault, if set, is asked before each item is stored, and its error makes
	// the item unstorable. Tests use it.
	Fault func(*record.Item) error
}

func (o Options) withDefaults() Options {
	if o.MemoryLimit == 0 {
		o.MemoryLimit = DefaultMemoryLimit
	}
	if o.Threads == 0 {
		o.Threads = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if o.TempDir == "" {
		o.TempDir = o.Path + ".tmp"
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = DefaultCheckpointBytes
	}
	if o.Readers == 0 {
		o.Readers = DefaultReaders
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Path == "":
		return errors.New("event store: no path")
	case o.MemoryLimit < 0, o.Threads < 0, o.CheckpointBytes < 0, o.Readers < 0:
		return errors.New("event store: a limit is negative")
	}
	return nil
}

// Store is an open event store. Its methods may be called from several
// goroutines; writes run one after the other.
type Store struct {
	opts    Options
	db      *duck.DB
	numbers identity.Numberer

	write  sync.Mutex // held by whoever uses writer
	writer *duck.Conn
	closed bool
	// usageRows is how many rows usage has, usageLimit with how many they are
	// added up.
	usageRows, usageLimit int64
	// keepsFrom is a receipt time before which there are no erased claims.
	keepsFrom int64
	// deletions is how often something was deleted, or may have been; at first
	// nobody knows, so it is 1.
	deletions int64

	maintenance sync.Mutex // held by whoever deletes or rewrites in many steps
	// clean is the value of deletions up to which the files have been cleaned.
	clean int64
	// copyStep is defaultCopyStep but in tests.
	copyStep int64

	readers *pool
}

// Create makes a new, empty store for the data folder with the given identity.
// The path must not exist.
func Create(ctx context.Context, path string, store [16]byte) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("create event store: %s exists", path)
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("create event store: %w", err)
	}
	db, err := duck.Open(path, settings(Options{Path: path}.withDefaults()))
	if err != nil {
		return fmt.Errorf("create event store: %w", err)
	}
	defer db.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("create event store: %w", err)
	}
	conn, err := db.Connect()
	if err != nil {
		return fmt.Errorf("create event store: %w", err)
	}
	defer conn.Close()
	if err := transaction(ctx, conn, func() error { return createSchema(ctx, conn, store) }); err != nil {
		return fmt.Errorf("create event store: %w", err)
	}
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("create event store: %w", err)
	}
	return nil
}

func createSchema(ctx context.Context, conn *duck.Conn, store [16]byte) error {
	for _, statement := range slices.Concat(firstSchema, secondSchema) {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return writeMark(ctx, conn, Mark{Store: store}, 0)
}

// Open opens an existing store and never creates one. A file of an earlier
// schema version is upgraded, in one transaction; ErrSchema is returned for a
// file of a later one.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	if _, err := os.Stat(opts.Path); err != nil {
		return nil, fmt.Errorf("open event store: %w", err)
	}
	db, err := duck.Open(opts.Path, settings(opts))
	if err != nil {
		return nil, fmt.Errorf("open event store: %w", err)
	}
	s := &Store{opts: opts, db: db, copyStep: defaultCopyStep}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open event store: %w", err), s.Close())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	writer, err := s.db.Connect()
	if err != nil {
		return err
	}
	s.writer = writer
	s.readers = newPool(s.db, s.opts.Readers)
	if err := s.upgrade(ctx); err != nil {
		return err
	}
	mark, _, err := readMark(ctx, writer)
	if err != nil {
		return err
	}
	s.numbers = identity.NewNumberer(mark.Store)
	if err := s.recall(ctx); err != nil {
		return err
	}
	if err := transaction(ctx, writer, func() error { return dropLeftovers(ctx, writer) }); err != nil {
		return err
	}
	s.deletions = 1
	for _, statement := range []string{createTouched, createTaken, `SET lock_configuration = true`} {
		if _, err := writer.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Close waits for running writes and queries, checkpoints what is in the
// write-ahead log and releases the file.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.readers != nil {
		s.readers.close()
	}
	var err error
	if s.writer != nil {
		_, err = s.writer.Exec(context.Background(), "CHECKPOINT")
		s.writer.Close()
	}
	s.db.Close()
	if err != nil {
		return fmt.Errorf("close event store: %w", classify(err))
	}
	return nil
}

// settings lists DuckDB's options. Nothing is ever loaded from the network,
// and queries can reach no file but the store's own. What forbids others
// comes last.
func settings(o Options) []duck.Setting {
	return []duck.Setting{
		{Name: "temp_directory", Value: o.TempDir},
		{Name: "memory_limit", Value: strconv.FormatInt(o.MemoryLimit, 10) + "B"},
		{Name: "threads", Value: strconv.Itoa(o.Threads)},
		{Name: "storage_compatibility_version", Value: storageVersion},
		// Apply checkpoints by itself, between transactions.
		{Name: "checkpoint_threshold", Value: "1000TB"},
		{Name: "autoinstall_known_extensions", Value: "false"},
		{Name: "autoload_known_extensions", Value: "false"},
		{Name: "allow_community_extensions", Value: "false"},
		{Name: "enable_external_access", Value: "false"},
	}
}
