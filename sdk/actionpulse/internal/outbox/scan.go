package outbox

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// openFolder opens a queue, or makes it, and looks through what is in it.
func openFolder(dir string, o Options) (*folder, error) {
	if err := o.FS.MakeDir(dir); err != nil {
		return nil, err
	}
	f := &folder{dir: dir, o: o}
	var err error
	if f.mark, err = openMark(o.FS, f.path("mark"), o.Sync); err != nil {
		return nil, err
	}
	if err := f.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// load reads all segments and opens the last one for writing.
func (f *folder) load() error {
	names, err := f.segmentNames()
	if err != nil {
		return err
	}
	f.done = f.mark.done
	f.seq = f.done
	for i, name := range names {
		if err := f.loadSegment(name, i == len(names)-1); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	f.last = f.seq
	if f.mark.damaged && len(f.segments) > 0 {
		f.o.Damaged(Damage{File: f.path("mark"), To: 2 * slotSize, Err: errors.New("what was sent already is not known")})
	}
	if n := len(f.segments); n > 0 {
		f.active, err = f.o.FS.OpenFile(f.path(f.segments[n-1].name))
	}
	return err
}

// segmentNames returns the names of the segments, oldest first.
func (f *folder) segmentNames() ([]string, error) {
	all, err := f.o.FS.List(f.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		first, ok := strings.CutSuffix(name, ".seg")
		n, err := strconv.ParseUint(first, 16, 64)
		if !ok || err != nil || segmentName(n) != name {
			continue
		}
		names = append(names, name)
		f.seq = max(f.seq, n)
	}
	sort.Strings(names)
	return names, nil
}

// loadSegment finds out what of a segment still waits, cuts off the end of
// the last one where a crash has left it unfinished, and removes a segment of
// which nothing waits.
func (f *folder) loadSegment(name string, last bool) error {
	content, err := f.o.FS.ReadFile(f.path(name))
	if err != nil {
		return err
	}
	s, start := &segment{name: name}, int64(0)
	for o := 0; o < len(content); {
		r, size, state := readFrame(content[o:])
		if state != frameGood {
			end := nextFrame(content, o+1)
			if end < 0 && last {
				return f.keep(s, start, f.cut(s, content[o:]))
			}
			if end < 0 {
				end = len(content)
			}
			f.setAside(name, int64(o), content[o:end])
			o, s.size = end, int64(end)
			continue
		}
		o += size
		s.size = int64(o)
		f.seq = max(f.seq, r.Seq)
		if r.Seq <= f.mark.done {
			start = s.size
			continue
		}
		s.records++
		s.bytes += int64(len(r.Data))
	}
	return f.keep(s, start, nil)
}

// cut removes the end of a segment behind its last good frame. Bytes that no
// unfinished write explains are kept.
func (f *folder) cut(s *segment, rest []byte) error {
	_, _, state := readFrame(rest)
	if state == frameShort || len(bytes.Trim(rest, "\x00")) == 0 {
		f.o.Damaged(Damage{File: f.path(s.name), From: s.size, To: s.size + int64(len(rest)), Torn: true})
	} else {
		f.setAside(s.name, s.size, rest)
	}
	file, err := f.o.FS.OpenFile(f.path(s.name))
	if err != nil {
		return err
	}
	err = file.Truncate(s.size)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// keep adds a segment, of which records wait from a place on, or removes it.
func (f *folder) keep(s *segment, start int64, err error) error {
	if err != nil {
		return err
	}
	if s.records == 0 {
		return f.o.FS.Remove(f.path(s.name))
	}
	if len(f.segments) == 0 {
		f.head = start
	}
	f.segments = append(f.segments, s)
	return nil
}
