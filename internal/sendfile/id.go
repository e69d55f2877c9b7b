package sendfile

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/google/uuid"
)

// chain derives the ids of the records of one input, in order.
type chain struct {
	sum     [sha256.Size]byte
	hash    hash.Hash
	scratch []byte
}

// newChain starts a chain. Another seed gives other ids throughout.
func newChain(seed string) *chain {
	c := &chain{hash: sha256.New()}
	c.next("actionpulse send 1", seed)
	return c
}

// next takes in one record and returns its id.
func (c *chain) next(cells ...string) string {
	b := c.scratch[:0]
	b = append(b, c.sum[:]...)
	b = binary.AppendUvarint(b, uint64(len(cells)))
	for _, cell := range cells {
		b = binary.AppendUvarint(b, uint64(len(cell)))
		b = append(b, cell...)
	}
	c.hash.Reset()
	c.hash.Write(b)
	c.hash.Sum(c.sum[:0])
	c.scratch = b
	return idOf(c.sum)
}

// idOf makes a UUID of version 8 (RFC 9562: contents of one's own choice).
func idOf(sum [sha256.Size]byte) string {
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
