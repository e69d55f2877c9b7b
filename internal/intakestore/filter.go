package intakestore

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	// bitsPerID sizes a filter: at 16 bits an id about one in a thousand
	// look-ups of an unknown id is answered "perhaps".
	bitsPerID = 16
	// wordsPerBlock makes a block one cache line of 64 bytes, so that asking a
	// filter costs one memory access however large it is.
	wordsPerBlock = 8
)

// filter is a blocked Bloom filter: it says "surely not" or "perhaps". All
// bits of an id lie in one cache line.
type filter struct {
	blocks [][wordsPerBlock]uint64
}

func newFilter(capacity int) *filter {
	n := (capacity*bitsPerID + 511) / 512
	return &filter{blocks: make([][wordsPerBlock]uint64, max(n, 1))}
}

// block returns the block of a hash: the high half picks it, by multiplication
// instead of division.
func (f *filter) block(hash uint64) *[wordsPerBlock]uint64 {
	return &f.blocks[(hash>>32)*uint64(len(f.blocks))>>32]
}

// The low half, spread by an odd constant for each word, sets one bit in each
// word of the block.
var spread = [wordsPerBlock]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
	0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

func (f *filter) add(hash uint64) {
	b, low := f.block(hash), uint32(hash)
	for i, odd := range spread {
		b[i] |= 1 << (low * odd >> 26)
	}
}

func (f *filter) mayContain(hash uint64) bool {
	b, low := f.block(hash), uint32(hash)
	for i, odd := range spread {
		if b[i]&(1<<(low*odd>>26)) == 0 {
			return false
		}
	}
	return true
}

func (f *filter) marshal() []byte {
	out := make([]byte, 0, len(f.blocks)*wordsPerBlock*8)
	for i := range f.blocks {
		for _, w := range f.blocks[i] {
			out = binary.LittleEndian.AppendUint64(out, w)
		}
	}
	return out
}

var errFilterSize = errors.New("filter has a wrong size")

func unmarshalFilter(b []byte) (*filter, error) {
	const size = wordsPerBlock * 8
	if len(b) == 0 || len(b)%size != 0 {
		return nil, errFilterSize
	}
	f := &filter{blocks: make([][wordsPerBlock]uint64, len(b)/size)}
	for i := range f.blocks {
		for j := range f.blocks[i] {
			f.blocks[i][j] = binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
	}
	return f, nil
}

// identityHash hashes an identity for the filters. The seed is the store's
// own, so that nobody can choose ids that crowd one block.
func identityHash(seed uint64, id record.Identity) uint64 {
	var b [29]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	putIdentity(b[8:], id)
	return xxhash.Sum64(b[:])
}
