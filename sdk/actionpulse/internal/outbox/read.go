package outbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// reader is the segment that is being read.
type reader struct {
	segment *segment
	file    File
}

// open opens a segment, and closes the one before.
func (r *reader) open(f *folder, s *segment) (File, error) {
	if r.segment == s {
		return r.file, nil
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	file, err := f.o.FS.OpenFile(f.path(s.name))
	if err != nil {
		return nil, err
	}
	r.segment, r.file = s, file
	return file, nil
}

// leave closes a segment that is about to be removed.
func (r *reader) leave(s *segment) error {
	if r.segment != s {
		return nil
	}
	return r.close()
}

func (r *reader) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.segment, r.file = nil, nil
	return err
}

// stretch is a part of a segment that is to be read, and what was found in it.
type stretch struct {
	segment  *segment
	from, to int64
	found    []Record
	bytes    int64
	// whole says that all of it was read.
	whole bool
}

// Peek returns the first records.
func (f *folder) Peek(l Limit) ([]Record, error) {
	var out []Record
	for _, part := range f.stretches() {
		file, err := f.reader.open(f, part.segment)
		if err == nil {
			err = f.read(file, part, &l)
		}
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		out = append(out, part.found...)
		if part.whole {
			f.correct(part, len(out) == 0)
		}
		if !part.whole {
			break
		}
	}
	f.peeked = out
	return out, nil
}

// stretches returns what is to be read, segment by segment.
func (f *folder) stretches() []*stretch {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := make([]*stretch, len(f.segments))
	for i, s := range f.segments {
		parts[i] = &stretch{segment: s, to: s.size}
	}
	if len(parts) > 0 {
		parts[0].from = f.head
	}
	return parts
}

// correct makes the counts of a segment agree with what could be read of it,
// and moves the head over what could not if nothing comes before it.
func (f *folder) correct(part *stretch, empty bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := part.segment; s.size == part.to {
		s.records, s.bytes = len(part.found), part.bytes
	}
	if empty && len(f.segments) > 0 && f.segments[0] == part.segment {
		f.head = part.to
	}
}

// read fills a stretch until the limit is reached. It counts down what is
// left of the limit.
func (f *folder) read(file File, part *stretch, l *Limit) error {
	size := int64(max(l.Bytes, 0)) + maxFrame
	for at := part.from; at < part.to; {
		chunk := make([]byte, min(size, part.to-at))
		if n, err := file.ReadAt(chunk, at); err != nil && (!errors.Is(err, io.EOF) || n < len(chunk)) {
			return err
		}
		next, full := f.parse(chunk, at, part, l)
		if full {
			return nil
		}
		if next == at { // no frame begins in the chunk: look at all there is
			size = part.to
		}
		at = next
	}
	part.whole = true
	return nil
}

// parse takes the frames out of a chunk that begins at a place in the file.
// It returns where the next chunk begins.
func (f *folder) parse(chunk []byte, at int64, part *stretch, l *Limit) (next int64, full bool) {
	last := at+int64(len(chunk)) == part.to
	for o := 0; o < len(chunk); {
		r, size, state := readFrame(chunk[o:])
		switch {
		case state == frameGood && !l.take(len(r.Data)):
			return at + int64(o), true
		case state == frameGood:
			r.segment, r.end = part.segment, at+int64(o+size)
			part.found = append(part.found, r)
			part.bytes += int64(len(r.Data))
			o += size
			continue
		case state == frameShort && !last:
			return at + int64(o), false
		}
		end := nextFrame(chunk, o+1)
		switch {
		case end < 0 && !last:
			return at + int64(o), false
		case end < 0:
			end = len(chunk)
		}
		f.setAside(part.segment.name, at+int64(o), chunk[o:end])
		o = end
	}
	return at + int64(len(chunk)), false
}

// take counts a record down, and reports whether there is room for it. There
// always is for a first one.
func (l *Limit) take(size int) bool {
	if l.taken > 0 && (l.taken >= l.Records || l.Bytes < size) {
		return false
	}
	l.taken++
	l.Bytes -= size
	return true
}

// setAside keeps what cannot be read in a file of its own, and reports it. It
// stays in the segment, too, and is reported once.
func (f *folder) setAside(segment string, from int64, content []byte) {
	d := Damage{File: f.path(segment), From: from, To: from + int64(len(content))}
	d.Kept = f.path(fmt.Sprintf("damaged-%s-%d", segment, from))
	if _, err := f.o.FS.ReadFile(d.Kept); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	d.Err = writeWhole(f.o.FS, d.Kept, content)
	f.o.Damaged(d)
}
