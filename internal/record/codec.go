package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"
)

// version is the first byte of every record that is written. Version 1, which
// knows no erasures and is the same otherwise, is still read. Programs that
// know version 1 only refuse version 2 by this byte, instead of taking an
// erasure for an item that cannot be stored.
const (
	version              = 2
	versionWithoutErases = 1
)

const (
	flagClaimed = 1 << iota
	flagTS
	flagProperties
	flagContext
	flagTraits
)

const (
	flagSentAt = 1 << iota
	flagHistorical
)

// ErrMalformed is returned when bytes are not an encoded record.
var ErrMalformed = errors.New("malformed record")

// AppendItem appends the encoded form of an item. TS and TSStatus are not
// part of it: Decode computes them from the record's receipt time.
func AppendItem(dst []byte, it *Item) []byte {
	var flags byte
	if it.Claimed {
		flags |= flagClaimed
	}
	if it.HasTS {
		flags |= flagTS
	}
	if it.Properties != nil {
		flags |= flagProperties
	}
	if it.Context != nil {
		flags |= flagContext
	}
	if it.Traits != nil {
		flags |= flagTraits
	}
	dst = append(dst, byte(it.Type), flags)
	dst = append(dst, it.EventID[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, it.Fingerprint)
	if it.HasTS {
		dst = binary.AppendVarint(dst, it.ClientTS)
	}
	dst = appendString(dst, it.Event)
	dst = appendString(dst, it.AnonID)
	dst = appendString(dst, it.UserID)
	dst = appendString(dst, it.SessionID)
	for _, object := range [][]byte{it.Properties, it.Context, it.Traits} {
		if object != nil {
			dst = binary.AppendUvarint(dst, uint64(len(object)))
			dst = append(dst, object...)
		}
	}
	return dst
}

// EncodedSize returns how many bytes AppendItem appends for an item.
func EncodedSize(it *Item) int {
	size := 2 + len(it.EventID) + 4
	if it.HasTS {
		size += uvarintSize(uint64(it.ClientTS)<<1 ^ uint64(it.ClientTS>>63))
	}
	for _, s := range [...]string{it.Event, it.AnonID, it.UserID, it.SessionID} {
		size += uvarintSize(uint64(len(s))) + len(s)
	}
	for _, object := range [...][]byte{it.Properties, it.Context, it.Traits} {
		if object != nil {
			size += uvarintSize(uint64(len(object))) + len(object)
		}
	}
	return size
}

// uvarintSize returns how many groups of seven bits a number has, at least one.
func uvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// AppendHeader appends the encoded form of a record without its position and
// items; count encoded items must follow. Records are keyed by position, so
// the position is not repeated in the value.
func AppendHeader(dst []byte, r *Record, count int) []byte {
	dst = append(dst, version)
	dst = append(dst, r.Store[:]...)
	dst = binary.AppendVarint(dst, r.Received)
	dst = binary.AppendUvarint(dst, uint64(r.Window))
	dst = binary.AppendUvarint(dst, uint64(r.Project))
	dst = append(dst, byte(r.KeyKind))
	dst = binary.AppendUvarint(dst, uint64(r.Key))
	var flags byte
	if r.Clock.HasSentAt {
		flags |= flagSentAt
	}
	if r.Clock.Historical {
		flags |= flagHistorical
	}
	dst = append(dst, flags)
	if r.Clock.HasSentAt {
		dst = binary.AppendVarint(dst, r.Clock.SentAt)
	}
	return binary.AppendUvarint(dst, uint64(count))
}

// Append appends the encoded form of a whole record.
func Append(dst []byte, r *Record) []byte {
	dst = AppendHeader(dst, r, len(r.Items))
	for i := range r.Items {
		dst = AppendItem(dst, &r.Items[i])
	}
	return dst
}

// Decode reads an encoded record found at a position. The items' strings and
// objects share one private copy of value. It returns ErrMalformed for
// anything Append would not have written.
func Decode(position uint64, value []byte) (Record, error) {
	d := decoder{buf: append(make([]byte, 0, len(value)), value...)}
	r := Record{Position: position}
	encoded := d.byte()
	if encoded != version && encoded != versionWithoutErases {
		return Record{}, fmt.Errorf("%w at position %d: unknown version", ErrMalformed, position)
	}
	copy(r.Store[:], d.take(len(r.Store)))
	r.Received = d.varint()
	r.Window = int64(d.uvarint())
	r.Project = uint32(d.uvarint())
	r.KeyKind = KeyKind(d.byte())
	r.Key = int64(d.uvarint())
	flags := d.byte()
	r.Clock.Historical = flags&flagHistorical != 0
	if flags&flagSentAt != 0 {
		r.Clock.HasSentAt, r.Clock.SentAt = true, d.varint()
	}
	count := d.uvarint()
	if count > uint64(len(d.buf)) { // every item takes more than one byte
		return Record{}, fmt.Errorf("%w at position %d: %d items", ErrMalformed, position, count)
	}
	r.Items = make([]Item, count)
	for i := range r.Items {
		d.item(&r.Items[i])
		it := &r.Items[i]
		it.TS, it.TSStatus = r.Clock.Resolve(it.ClientTS, it.HasTS, r.Received)
		if it.Type == ItemErase && (encoded == versionWithoutErases || it.Claimed || !it.Person().Valid()) {
			return Record{}, fmt.Errorf("%w at position %d: an erasure", ErrMalformed, position)
		}
	}
	if d.failed || len(d.buf) != 0 || count == 0 {
		return Record{}, fmt.Errorf("%w at position %d", ErrMalformed, position)
	}
	return r, nil
}

// decoder reads from buf and remembers whether anything was missing, so that
// callers check once at the end.
type decoder struct {
	buf    []byte
	failed bool
}

func (d *decoder) item(it *Item) {
	it.Type = ItemType(d.byte())
	flags := d.byte()
	it.Claimed = flags&flagClaimed != 0
	copy(it.EventID[:], d.take(len(it.EventID)))
	if b := d.take(4); b != nil {
		it.Fingerprint = binary.LittleEndian.Uint32(b)
	}
	if flags&flagTS != 0 {
		it.HasTS, it.ClientTS = true, d.varint()
	}
	it.Event = d.string()
	it.AnonID = d.string()
	it.UserID = d.string()
	it.SessionID = d.string()
	if flags&flagProperties != 0 {
		it.Properties = d.bytes()
	}
	if flags&flagContext != 0 {
		it.Context = d.bytes()
	}
	if flags&flagTraits != 0 {
		it.Traits = d.bytes()
	}
}

func (d *decoder) take(n int) []byte {
	if n > len(d.buf) {
		d.failed, d.buf = true, nil
		return nil
	}
	b := d.buf[:n:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 {
		d.failed, d.buf = true, nil
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.buf)
	if n <= 0 {
		d.failed, d.buf = true, nil
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.buf)) {
		d.failed, d.buf = true, nil
		return nil
	}
	return d.take(int(n))
}

// string shares the decoder's private copy instead of allocating: nobody
// writes to that copy once Decode has made it.
func (d *decoder) string() string {
	b := d.bytes()
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b)) //nolint:gosec // the caller keeps the record's bytes as they are
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
