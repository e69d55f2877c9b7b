// Package outbox keeps records until they have been sent: in order, in a
// folder that survives the process and the machine, or in memory.
//
// # Invariants
//
//  1. When Append returns nil the record is in the queue, and in a folder it
//     is on disk (with [SyncNever]: with the operating system). When it
//     returns an error the record is not in the queue and never will be, with
//     one exception: the disk refused to write and then refused to take back
//     what was half written, and the process ended before it could.
//  2. A queue hands out records in the order of their numbers, which rise
//     and are never given twice.
//  3. Only Ack takes a record out of a queue. What cannot be read any more is
//     set aside in a file of its own and reported; the records around it stay.
//  4. One process at a time has a folder.
//
// The package never speaks HTTP, never looks at a clock and never looks into
// what a record holds.
package outbox

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sort"
)

// Errors that callers act on.
var (
	// ErrFull is returned by Append when the record would pass a limit.
	ErrFull = errors.New("the outbox is full")
	// ErrTooLarge is returned by Append for a record over [MaxData].
	ErrTooLarge = errors.New("the record is too large for the outbox")
	// ErrLocked is returned by Open when another process, or another part of
	// this one, has the folder.
	ErrLocked = errors.New("the folder is in use: one process at a time has an outbox")
	// ErrOwner is returned by Open when the folder belongs to another server
	// or project.
	ErrOwner = errors.New("the folder belongs to another server or project")
	// ErrClosed is returned once a queue is closed.
	ErrClosed = errors.New("the outbox is closed")
)

// MaxData is how many bytes a record may hold.
const MaxData = 128 << 10

// Type says what a record is for its user; the package only keeps it.
type Type uint8

// Record is one thing to be sent.
type Record struct {
	// Seq is the record's number, given by Append.
	Seq  uint64
	Type Type
	// At is the time of the fact and Queued the time of Append, as its caller
	// says; both in milliseconds since 1970.
	At, Queued int64
	ID         [16]byte
	// Data is not changed after Append, nor by who reads it.
	Data []byte

	// segment and end say where the record ends in a folder.
	segment *segment
	end     int64
}

// Queue holds records in order. Its methods may be called at any time; of
// Peek, Ack and Begin only one at a time.
type Queue interface {
	// Append adds a record and returns its number. Errors: ErrFull,
	// ErrTooLarge, ErrClosed, or what the disk said.
	Append(r Record) (uint64, error)
	// Peek returns the first records: at least one unless the queue is empty,
	// then no more than the limit allows.
	Peek(l Limit) ([]Record, error)
	// Ack takes out the records up to and with one that Peek returned. On an
	// error they are taken out nevertheless, but may come back after a crash.
	Ack(last Record) error
	// Begin notes on disk that a record is about to be sent, before it is.
	Begin(r Record) error
	// Begun returns the number of the last record noted by Begin, 0 if there
	// is none.
	Begun() uint64
	// State says how much there is.
	State() State
	// Sync brings to disk what [SyncNever] left to the operating system.
	Sync() error
	// Close ends the queue; it does not take anything out.
	Close() error
}

// Limit bounds what Peek returns, in records and in bytes of data.
type Limit struct {
	Records int
	Bytes   int
	// taken counts what was returned.
	taken int
}

// State is what a queue holds.
type State struct {
	// Records are waiting, with so many Bytes of data.
	Records int
	Bytes   int64
	// Last is the highest number that Append has given, and Done the highest
	// that was taken out.
	Last, Done uint64
}

// Sync says when a record is on disk.
type Sync uint8

// The ways to write.
const (
	// SyncAlways: when Append returns.
	SyncAlways Sync = iota
	// SyncNever: when the operating system sees fit. A record survives the
	// process, and not a crash of the machine.
	SyncNever
)

// Options are the settings of a folder.
type Options struct {
	Dir string
	// Server and Project say whom the records are for. A folder made for
	// another is refused: by Project if both name one, else by Server.
	Server, Project string
	Sync            Sync
	// MaxRecords and MaxBytes bound a queue; 0 is no bound.
	MaxRecords int
	MaxBytes   int64
	// SegmentBytes is the size at which a new file is begun; 0 means 4 MiB.
	SegmentBytes int64
	// Damaged is told of what cannot be read; it may be nil. It is called by
	// Open, Queue and Peek.
	Damaged func(Damage)
	// FS is the file system; nil is that of the operating system.
	FS FS
}

// Damage is a part of a folder that cannot be read.
type Damage struct {
	// File is the one that is damaged, from byte From up to To.
	File     string
	From, To int64
	// Kept is the file that holds the bytes now.
	Kept string
	// Torn says that a crash explains it: the bytes end the last file, as a
	// write does that never finished. They are cut off and not kept.
	Torn bool
	// Err is why the bytes could not be kept or cut.
	Err error
}

const defaultSegmentBytes = 4 << 20

// Outbox is a folder with one queue for each kind of key.
type Outbox struct {
	o      Options
	lock   io.Closer
	queues map[string]*folder
}

// Open makes the folder, unless it is there, and locks it. Errors: ErrLocked,
// ErrOwner, or what the disk said.
func Open(o Options) (*Outbox, error) {
	o = o.withDefaults()
	b, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open the outbox %s: %w", o.Dir, err)
	}
	return b, nil
}

func (o Options) withDefaults() Options {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.Damaged == nil {
		o.Damaged = func(Damage) {}
	}
	if o.FS == nil {
		o.FS = systemFS{}
	}
	return o
}

func open(o Options) (*Outbox, error) {
	if err := o.FS.MakeDir(o.Dir); err != nil {
		return nil, err
	}
	lock, err := o.FS.Lock(filepath.Join(o.Dir, "LOCK"))
	if err != nil {
		return nil, err
	}
	b := &Outbox{o: o, lock: lock, queues: map[string]*folder{}}
	if err := b.own(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return b, nil
}

// Queue returns the queue of a kind, which is made if it is not there.
func (b *Outbox) Queue(kind string) (Queue, error) {
	if q, ok := b.queues[kind]; ok {
		return q, nil
	}
	q, err := openFolder(filepath.Join(b.o.Dir, kind), b.o)
	if err != nil {
		return nil, fmt.Errorf("open the outbox's queue %s: %w", kind, err)
	}
	b.queues[kind] = q
	return q, nil
}

// Kinds returns those of the given kinds that have a queue in the folder.
func (b *Outbox) Kinds(of ...string) ([]string, error) {
	names, err := b.o.FS.List(b.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	sort.Strings(names)
	var found []string
	for _, kind := range of {
		if i := sort.SearchStrings(names, kind); i < len(names) && names[i] == kind {
			found = append(found, kind)
		}
	}
	return found, nil
}

// Close closes all queues and frees the folder.
func (b *Outbox) Close() error {
	var errs []error
	for _, q := range b.queues {
		errs = append(errs, q.Close())
	}
	return errors.Join(append(errs, b.lock.Close())...)
}
