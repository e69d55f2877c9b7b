package outbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
)

// folder is a queue on disk: segments, which are only added to, and a mark of
// what was worked off. A segment is removed once all of it was.
type folder struct {
	dir  string
	o    Options
	mark *mark

	// commit is held by who writes; it guards active.
	commit sync.Mutex
	// active is the last segment, open for writing; nil if there is none.
	active File
	// dirty says that the active segment may end in what a failed write left.
	dirty bool

	// mu guards what follows, and is not held while the disk works.
	mu     sync.Mutex
	group  *group
	closed bool
	// seq is the last number given, last the last one that is in the queue,
	// done the last one that was taken out.
	seq, last, done uint64
	segments        []*segment
	// head is where the first record begins in the first segment.
	head int64
	// joining are records on their way into the queue.
	joining joining

	// peeked is what Peek returned last; reader is the segment it reads. They
	// and mark are used by one caller at a time.
	peeked []Record
	reader reader
}

// segment is a file of frames.
type segment struct {
	name string
	// size is how far it was written, records and bytes what of it still
	// waits.
	size    int64
	records int
	bytes   int64
}

type joining struct {
	records int
	bytes   int64
}

// segmentName names a segment by the first number it was made for, which is
// above every number in the segments before it.
func segmentName(first uint64) string { return fmt.Sprintf("%016x.seg", first) }

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// State says how much there is.
func (f *folder) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state()
}

func (f *folder) state() State {
	s := State{Last: f.last, Done: f.done}
	for _, seg := range f.segments {
		s.Records += seg.records
		s.Bytes += seg.bytes
	}
	return s
}

// Ack takes out the records up to and with one that Peek returned.
func (f *folder) Ack(last Record) error {
	f.mu.Lock()
	left := f.peeked[:0:0]
	for _, r := range f.peeked {
		if r.Seq > last.Seq {
			left = append(left, r)
			continue
		}
		r.segment.records--
		r.segment.bytes -= int64(len(r.Data))
	}
	f.peeked = left
	f.done = last.Seq
	gone := f.advance(last.segment, last.end)
	f.mu.Unlock()
	return errors.Join(f.mark.set(last.Seq, 0), f.remove(gone))
}

// advance moves the head and returns the segments before it, which are
// forgotten. The last segment stays: it is being written.
func (f *folder) advance(to *segment, offset int64) []*segment {
	n := 0
	for f.segments[n] != to {
		n++
	}
	if offset >= to.size && n < len(f.segments)-1 {
		n, offset = n+1, 0
	}
	gone := f.segments[:n:n]
	f.segments = f.segments[n:]
	f.head = offset
	return gone
}

// remove deletes segments. One that cannot be deleted now is deleted by the
// next start.
func (f *folder) remove(gone []*segment) error {
	var errs []error
	for _, s := range gone {
		errs = append(errs, f.reader.leave(s), f.o.FS.Remove(f.path(s.name)))
	}
	return errors.Join(errs...)
}

// Begin notes on disk that a record is about to be sent.
func (f *folder) Begin(r Record) error { return f.mark.set(f.mark.done, r.Seq) }

// Begun returns the number of the last record noted by Begin.
func (f *folder) Begun() uint64 { return f.mark.begun }

// Sync brings to disk what was left to the operating system.
func (f *folder) Sync() error {
	f.commit.Lock()
	defer f.commit.Unlock()
	if f.active == nil || f.o.Sync == SyncAlways {
		return nil
	}
	return errors.Join(f.active.Sync(), f.mark.file.Sync())
}

// Close ends the queue.
func (f *folder) Close() error {
	f.commit.Lock()
	defer f.commit.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	errs := []error{f.reader.close(), f.mark.file.Close()}
	if f.active != nil {
		if f.o.Sync == SyncNever {
			errs = append(errs, f.active.Sync())
		}
		errs = append(errs, f.active.Close())
	}
	return errors.Join(errs...)
}
