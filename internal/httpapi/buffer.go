package httpapi

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Sizes of a body's buffer.
const (
	firstBuffer = 4 << 10
	// maxTrusted is how much is set aside because a client says that it will
	// send it; the rest when it has come.
	maxTrusted = 128 << 10
)

// What stops a body from being held.
var (
	errTooLarge = errors.New("larger than the limit")
	errNoMemory = errors.New("the memory for bodies is used up")
)

// bodies bounds and recycles the memory that bodies are held in.
type bodies struct {
	pool  sync.Pool
	limit int64
	held  atomic.Int64
}

func newBodies(limit int64) *bodies {
	return &bodies{limit: limit, pool: sync.Pool{New: func() any { return new(buffer) }}}
}

// buffer holds one body. Its memory counts as held until it is put back.
type buffer struct {
	owner *bodies
	data  []byte
	held  int64
}

// get returns an empty buffer.
func (b *bodies) get() *buffer {
	buf := b.pool.Get().(*buffer)
	buf.owner, buf.data = b, buf.data[:0]
	if !buf.hold(int64(cap(buf.data))) {
		buf.data = nil
	}
	return buf
}

// put takes a buffer back; nothing may refer to its bytes any more. Nil is
// allowed.
func (b *bodies) put(buf *buffer) {
	if buf == nil {
		return
	}
	b.held.Add(-buf.held)
	buf.held = 0
	b.pool.Put(buf)
}

// forget leaves the bytes to whoever may still refer to them: the next request
// gets others. Nil is allowed.
func (buf *buffer) forget() {
	if buf != nil {
		buf.data = nil
	}
}

// hold makes the buffer count as size bytes, unless that is too much.
func (buf *buffer) hold(size int64) bool {
	more := size - buf.held
	if buf.owner.held.Add(more) > buf.owner.limit {
		buf.owner.held.Add(-more)
		return false
	}
	buf.held = size
	return true
}

// grow makes room for at least one more byte and at most limit+1 in all.
func (buf *buffer) grow(want, limit int) error {
	size := min(max(2*cap(buf.data), want, firstBuffer), limit+1)
	// While the bytes move, both places are held.
	if !buf.hold(int64(cap(buf.data) + size)) {
		return errNoMemory
	}
	data := make([]byte, len(buf.data), size)
	copy(data, buf.data)
	buf.data = data
	buf.hold(int64(size))
	return nil
}

// fill reads r to its end. Hint is how long it says it is, or less than 0. It
// returns errTooLarge once there are more than limit bytes, errNoMemory, or
// what reading said.
func (buf *buffer) fill(r io.Reader, limit int, hint int64) error {
	if want := int(min(hint, maxTrusted)) + 1; want > cap(buf.data) {
		if err := buf.grow(want, limit); err != nil {
			return err
		}
	}
	for {
		if len(buf.data) == cap(buf.data) {
			if err := buf.grow(0, limit); err != nil {
				return err
			}
		}
		n, err := r.Read(buf.data[len(buf.data):cap(buf.data)])
		buf.data = buf.data[:len(buf.data)+n]
		if len(buf.data) > limit {
			return errTooLarge
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
