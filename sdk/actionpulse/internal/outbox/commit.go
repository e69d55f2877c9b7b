package outbox

import (
	"errors"
	"fmt"
)

// group is records that are written, and brought to disk, together: all that
// arrived while the group before was being written.
type group struct {
	frames  []byte
	records int
	bytes   int64
	// first and last are their numbers.
	first, last uint64
	// done and err are guarded by commit.
	done bool
	err  error
}

// Append adds a record. The first of a group to get its turn writes for all.
func (f *folder) Append(r Record) (uint64, error) {
	g, seq, err := f.join(r)
	if err != nil {
		return 0, err
	}
	f.commit.Lock()
	defer f.commit.Unlock()
	if !g.done {
		f.detach(g)
		g.err = f.write(g)
		g.done = true
		f.settle(g)
	}
	return seq, g.err
}

// join puts a record into the group that is written next.
func (f *folder) join(r Record) (*group, uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, 0, ErrClosed
	}
	s, size := f.state(), int64(len(r.Data))
	if err := f.o.admit(s.Records+f.joining.records, s.Bytes+f.joining.bytes, size); err != nil {
		return nil, 0, err
	}
	if f.group == nil {
		f.group = &group{first: f.seq + 1}
	}
	f.seq++
	r.Seq = f.seq
	g := f.group
	g.frames = appendFrame(g.frames, r)
	g.records++
	g.bytes += size
	g.last = r.Seq
	f.joining.records++
	f.joining.bytes += size
	return g, r.Seq, nil
}

// admit refuses a record that is too large or would pass a limit.
func (o Options) admit(records int, bytes, size int64) error {
	switch {
	case size > MaxData:
		return ErrTooLarge
	case o.MaxRecords > 0 && records >= o.MaxRecords, o.MaxBytes > 0 && bytes+size > o.MaxBytes:
		return ErrFull
	default:
		return nil
	}
}

// detach begins a new group for those who come now.
func (f *folder) detach(g *group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.group == g {
		f.group = nil
	}
}

// settle makes what was written part of the queue.
func (f *folder) settle(g *group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.joining.records -= g.records
	f.joining.bytes -= g.bytes
	if g.err != nil {
		return
	}
	s := f.segments[len(f.segments)-1]
	s.size += int64(len(g.frames))
	s.records += g.records
	s.bytes += g.bytes
	f.last = g.last
	g.frames = nil
}

// write brings a group to disk, or takes back what it has written of it.
func (f *folder) write(g *group) error {
	at, err := f.room(g.first)
	if err != nil {
		return fmt.Errorf("write to the outbox: %w", err)
	}
	_, err = f.active.WriteAt(g.frames, at)
	if err == nil && f.o.Sync == SyncAlways {
		err = f.active.Sync()
	}
	if err == nil {
		return nil
	}
	f.dirty = true
	return fmt.Errorf("write to the outbox: %w", errors.Join(err, f.takeBack(at)))
}

// takeBack cuts off what a failed write may have left.
func (f *folder) takeBack(size int64) error {
	err := f.active.Truncate(size)
	if err == nil {
		err = f.active.Sync()
	}
	if err == nil {
		f.dirty = false
	}
	return err
}

// room returns where to write in the active segment. Nothing is written behind
// what could not be taken back: a reader would find it there.
func (f *folder) room(first uint64) (int64, error) {
	f.mu.Lock()
	closed, size := f.closed, int64(0)
	if n := len(f.segments); n > 0 {
		size = f.segments[n-1].size
	}
	f.mu.Unlock()
	switch {
	case closed:
		return 0, ErrClosed
	case f.active == nil:
		return 0, f.begin(first)
	}
	// What is written into a file that was removed is lost.
	if err := f.active.Check(); err != nil {
		return 0, err
	}
	switch {
	case f.dirty:
		return size, f.takeBack(size)
	case size >= f.o.SegmentBytes:
		return 0, f.begin(first)
	default:
		return size, nil
	}
}

// begin makes a new segment the active one. The folder is brought to disk
// before anything in it counts.
func (f *folder) begin(first uint64) error {
	s := &segment{name: segmentName(first)}
	file, err := f.o.FS.OpenFile(f.path(s.name))
	if err != nil {
		return err
	}
	err = file.Truncate(0)
	if err == nil {
		err = f.o.FS.SyncDir(f.dir)
	}
	if err == nil && f.active != nil && f.o.Sync == SyncNever {
		err = f.active.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if f.active != nil {
		err = f.active.Close()
	}
	f.active = file
	f.mu.Lock()
	defer f.mu.Unlock()
	f.segments = append(f.segments, s)
	return err
}
