package outbox_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// disk is a file system in memory that can fail and crash. What was not synced
// survives a crash in part: each write in none, one or two of its halves, each
// change of a folder or not.
type disk struct {
	mu sync.Mutex
	// names is what a program sees, durable what is on disk.
	names, durable map[string]*node
	locked         map[string]bool
	// crashAt counts down with each change; at 0 the machine crashes. From
	// failAt to failEnd each change fails. Negative: never.
	crashAt, failAt, failEnd int
	crashed                  bool
	// failed counts the changes that have failed.
	failed int
	// draw returns a number from 0 to n-1.
	draw func(n int) int
}

type node struct {
	content, durable []byte
	changes          []change
}

// change is a write of bytes at a place, or a cut to a size.
type change struct {
	at    int64
	bytes []byte
	cut   bool
}

var (
	errCrashed = errors.New("the machine has crashed")
	errFull    = errors.New("no space left")
)

func newDisk(draw func(int) int) *disk {
	return &disk{
		names: map[string]*node{}, durable: map[string]*node{}, locked: map[string]bool{},
		crashAt: -1, failAt: -1, failEnd: -1, draw: draw,
	}
}

// step counts a change, and says whether it fails.
func (d *disk) step() error {
	switch {
	case d.crashed:
		return errCrashed
	case d.crashAt == 0:
		d.crashed = true
		return errCrashed
	}
	d.crashAt--
	d.failAt--
	d.failEnd--
	if d.failAt < 0 && d.failEnd >= 0 {
		d.failed++
		return errFull
	}
	return nil
}

// restart returns the disk as it is found after a crash, or after the process
// was killed and the machine was not.
func (d *disk) restart(machine bool) *disk {
	after := newDisk(d.draw)
	after.names = maps.Clone(d.names)
	if machine {
		for _, name := range slices.Sorted(maps.Keys(d.all())) {
			kept, now := d.durable[name], d.names[name]
			if kept != now && d.draw(2) == 0 {
				kept = now
			}
			if kept == nil {
				delete(after.names, name)
				continue
			}
			after.names[name] = &node{content: kept.survive(d.draw)}
		}
	}
	for name, n := range after.names {
		after.names[name] = &node{content: slices.Clone(n.content), durable: slices.Clone(n.content)}
	}
	after.durable = maps.Clone(after.names)
	return after
}

func (d *disk) all() map[string]bool {
	all := map[string]bool{}
	for name := range d.names {
		all[name] = true
	}
	for name := range d.durable {
		all[name] = true
	}
	return all
}

// survive applies parts of what was not synced to what was.
func (n *node) survive(draw func(int) int) []byte {
	content := slices.Clone(n.durable)
	for _, c := range n.changes {
		if c.cut {
			if draw(2) == 0 {
				content = apply(content, c)
			}
			continue
		}
		if draw(2) == 0 { // the size is on disk, and zeros are
			content = apply(content, change{at: c.at + int64(len(c.bytes))})
		}
		half := draw(len(c.bytes) + 1)
		if draw(2) == 0 {
			content = apply(content, change{at: c.at, bytes: c.bytes[:half]})
		}
		if draw(2) == 0 {
			content = apply(content, change{at: c.at + int64(half), bytes: c.bytes[half:]})
		}
	}
	return content
}

func apply(content []byte, c change) []byte {
	end := int(c.at) + len(c.bytes)
	if len(content) < end {
		content = append(content, make([]byte, end-len(content))...)
	}
	if c.cut {
		return content[:c.at]
	}
	copy(content[c.at:], c.bytes)
	return content
}

func (d *disk) MakeDir(string) error { return d.check() }

func (d *disk) check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return errCrashed
	}
	return nil
}

func (d *disk) OpenFile(path string) (outbox.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return nil, errCrashed
	}
	if d.names[path] == nil {
		if err := d.step(); err != nil {
			return nil, err
		}
		d.names[path] = &node{}
	}
	return &handle{d, d.names[path]}, nil
}

func (d *disk) ReadFile(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return nil, errCrashed
	}
	if d.names[path] == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(d.names[path].content), nil
}

func (d *disk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.names {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

func (d *disk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	delete(d.names, path)
	return nil
}

func (d *disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	for name := range d.all() {
		if filepath.Dir(name) != dir {
			continue
		}
		delete(d.durable, name)
		if n := d.names[name]; n != nil {
			d.durable[name] = n
		}
	}
	return nil
}

func (d *disk) Lock(path string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[path] {
		return nil, outbox.ErrLocked
	}
	d.locked[path] = true
	return closer(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.locked[path] = false
		return nil
	}), nil
}

type closer func() error

func (c closer) Close() error { return c() }

// handle is an open file.
type handle struct {
	d *disk
	n *node
}

func (h *handle) change(c change) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	err := h.d.step()
	if err != nil && !c.cut { // a part of it is written
		c.bytes = c.bytes[:h.d.draw(len(c.bytes)+1)]
	}
	if err == nil || !c.cut {
		c.bytes = slices.Clone(c.bytes)
		h.n.content = apply(h.n.content, c)
		h.n.changes = append(h.n.changes, c)
	}
	return err
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	return len(b), h.change(change{at: at, bytes: b})
}

func (h *handle) Truncate(size int64) error { return h.change(change{at: size, cut: true}) }

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if at >= int64(len(h.n.content)) {
		return 0, io.EOF
	}
	n := copy(b, h.n.content[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.step(); err != nil {
		return err
	}
	h.n.durable, h.n.changes = slices.Clone(h.n.content), nil
	return nil
}

func (h *handle) Size() (int64, error) { return int64(len(h.n.content)), nil }

func (h *handle) Check() error { return nil }

func (h *handle) Close() error { return nil }
