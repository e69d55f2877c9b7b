// Package id owns the form of the ids of everything that is not an event:
// version 7 UUIDs, lower case, hyphenated, so that they sort by the time they
// were made. It never reads a clock or a random source of its own, and it has
// nothing to do with the event ids that clients choose.
package id

import (
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// length is the number of bytes of an id's text.
const length = 36

// New returns a new id. The time is kept to the millisecond; random must give
// 10 bytes.
func New(now time.Time, random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[6:]); err != nil {
		return "", fmt.Errorf("read random bytes for an id: %w", err)
	}
	ms := now.UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return text(b), nil
}

func text(b [16]byte) string {
	out := make([]byte, 0, length)
	for i, end := range []int{4, 6, 8, 10, 16} {
		start := []int{0, 4, 6, 8, 10}[i]
		if i > 0 {
			out = append(out, '-')
		}
		out = hex.AppendEncode(out, b[start:end])
	}
	return string(out)
}

// Valid reports whether s has the one form in which ids are written: 36
// characters, lower-case hexadecimal and hyphens. What is not valid names
// nothing, and need not be looked up.
func Valid(s string) bool {
	if len(s) != length {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
