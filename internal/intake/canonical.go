package intake

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep a body may nest; the request's own object is level 1.
const maxDepth = 64

var (
	errDepth  = errors.New("nests deeper than 64 levels")
	errNUL    = errors.New(`holds the character \u0000`)
	errNumber = errors.New("holds a number out of range")
)

// canonical hashes JSON values that were found valid before, so that values
// that mean the same hash the same: member order, white space, string escapes
// and number spelling do not matter. On the way it refuses what could be read
// but not stored: the NUL character and numbers no double can hold.
type canonical struct {
	scratch []byte
}

// hash returns the hash of a valid value whose own level is depth.
func (c *canonical) hash(value []byte, depth int) (uint64, error) {
	h, _, err := c.value(value, 0, depth)
	return h, err
}

func (c *canonical) value(b []byte, i, depth int) (uint64, int, error) {
	i = skipSpace(b, i)
	switch b[i] {
	case '{':
		return c.object(b, i+1, depth)
	case '[':
		return c.array(b, i+1, depth)
	case '"':
		end := stringEnd(b, i)
		h, err := c.string(b[i:end])
		return h, end, err
	case 't':
		return hashTrue, i + 4, nil
	case 'f':
		return hashFalse, i + 5, nil
	case 'n':
		return hashNull, i + 4, nil
	default:
		end := i + 1
		for end < len(b) && isNumberByte(b[end]) {
			end++
		}
		h, err := hashNumber(b[i:end])
		return h, end, err
	}
}

// object adds up the members' hashes: a sum does not depend on their order.
func (c *canonical) object(b []byte, i, depth int) (uint64, int, error) {
	if depth > maxDepth {
		return 0, 0, errDepth
	}
	sum := uint64(0)
	for i = skipSpace(b, i); b[i] != '}'; i = skipSeparator(b, i) {
		end := stringEnd(b, i)
		name, err := c.string(b[i:end])
		if err != nil {
			return 0, 0, err
		}
		i = skipSpace(b, end) + 1 // the colon
		var value uint64
		if value, i, err = c.value(b, i, depth+1); err != nil {
			return 0, 0, err
		}
		sum += mix(name, value)
	}
	return mix(hashObject, sum), i + 1, nil
}

func (c *canonical) array(b []byte, i, depth int) (uint64, int, error) {
	if depth > maxDepth {
		return 0, 0, errDepth
	}
	h := uint64(hashArray)
	for i = skipSpace(b, i); b[i] != ']'; i = skipSeparator(b, i) {
		value, next, err := c.value(b, i, depth+1)
		if err != nil {
			return 0, 0, err
		}
		h, i = mix(h, value), next
	}
	return h, i + 1, nil
}

// string hashes a quoted string by what it says.
func (c *canonical) string(quoted []byte) (uint64, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return xxhash.Sum64(quoted[1 : len(quoted)-1]), nil
	}
	var err error
	if c.scratch, err = jsontext.AppendUnquote(c.scratch[:0], quoted); err != nil {
		return 0, err
	}
	if bytes.IndexByte(c.scratch, 0) >= 0 {
		return 0, errNUL
	}
	return xxhash.Sum64(c.scratch), nil
}

// hashNumber hashes a number by its value as a double; 1, 1.0 and 1e0 are one.
func hashNumber(b []byte) (uint64, error) {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return 0, errNumber
	}
	if f == 0 {
		f = 0 // not minus zero
	}
	return mix(hashNumberTag, math.Float64bits(f)), nil
}

// Tags that keep values of different kinds apart.
const (
	hashNull = 0x9e3779b97f4a7c15 + iota
	hashTrue
	hashFalse
	hashObject
	hashArray
	hashNumberTag
)

// mix combines two hashes; the order matters.
func mix(a, b uint64) uint64 {
	var buf [16]byte
	binary.LittleEndian.PutUint64(buf[:8], a)
	binary.LittleEndian.PutUint64(buf[8:], b)
	return xxhash.Sum64(buf[:])
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r' {
		i++
	}
	return i
}

// skipSeparator moves to the next element or to the closing bracket.
func skipSeparator(b []byte, i int) int {
	i = skipSpace(b, i)
	if b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return i
}

// stringEnd returns the index after the closing quote of the string at i.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}
