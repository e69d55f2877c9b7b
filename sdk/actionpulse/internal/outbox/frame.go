package outbox

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A frame is a record in a segment: magic, length of the body, checksum of
// both of what follows and the length, body. The body is number, times, type,
// id and data.
const (
	magicSize  = 4
	headSize   = magicSize + 4 + 4
	fieldsSize = 8 + 8 + 8 + 1 + 16
	maxBody    = fieldsSize + MaxData
	maxFrame   = headSize + maxBody
)

var (
	magic      = []byte("\xa9APR")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendFrame adds the frame of a record to b.
func appendFrame(b []byte, r Record) []byte {
	b = append(b, magic...)
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(fieldsSize+len(r.Data)))
	b = append(b, 0, 0, 0, 0) // the checksum
	b = binary.LittleEndian.AppendUint64(b, r.Seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.At))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Queued))
	b = append(b, byte(r.Type))
	b = append(b, r.ID[:]...)
	b = append(b, r.Data...)
	binary.LittleEndian.PutUint32(b[start+4:], sum(b[start:start+4], b[start+8:]))
	return b
}

func sum(length, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, body)
}

// frameState is what the bytes at a place are.
type frameState uint8

const (
	frameGood frameState = iota
	// frameShort: they may be a frame whose end is not there.
	frameShort
	frameBad
)

// readFrame reads the frame that b begins with, and returns its size. The
// record's data are a part of b.
func readFrame(b []byte) (r Record, size int, state frameState) {
	if n := min(len(b), magicSize); !bytes.Equal(b[:n], magic[:n]) {
		return r, 0, frameBad
	}
	if len(b) < headSize {
		return r, 0, frameShort
	}
	length := int(binary.LittleEndian.Uint32(b[magicSize:]))
	if length < fieldsSize || length > maxBody {
		return r, 0, frameBad
	}
	size = headSize + length
	if len(b) < size {
		return r, 0, frameShort
	}
	body := b[headSize:size:size]
	if binary.LittleEndian.Uint32(b[magicSize+4:]) != sum(b[magicSize:magicSize+4], body) {
		return r, 0, frameBad
	}
	r.Seq = binary.LittleEndian.Uint64(body)
	r.At = int64(binary.LittleEndian.Uint64(body[8:]))
	r.Queued = int64(binary.LittleEndian.Uint64(body[16:]))
	r.Type = Type(body[24])
	copy(r.ID[:], body[25:])
	r.Data = body[fieldsSize:]
	return r, size, frameGood
}

// nextFrame returns where the next good frame begins in b, not before from;
// -1 if there is none.
func nextFrame(b []byte, from int) int {
	for from < len(b) {
		i := bytes.Index(b[from:], magic)
		if i < 0 {
			return -1
		}
		if _, _, state := readFrame(b[from+i:]); state == frameGood {
			return from + i
		}
		from += i + 1
	}
	return -1
}
