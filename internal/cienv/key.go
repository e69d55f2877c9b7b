package cienv

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxKey is how long the server lets a key be, in characters.
	maxKey = 128
	// separator stands between the parts of a key.
	separator = ":"
	// cutMark stands before the hash of a key that was too long.
	cutMark = "~"
	// hashBytes of SHA-256 stand for what was cut off.
	hashBytes = 16
)

// joined makes a key of its parts. A key that is too long keeps its beginning
// for people to read, and a hash of the whole tells it from others.
func joined(parts []string) string {
	for i := range parts {
		parts[i] = escaped(parts[i])
	}
	key := strings.Join(parts, separator)
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:hashBytes])
	return key[:maxKey-len(cutMark)-len(hash)] + cutMark + hash
}

// escaped replaces each byte that a key may not hold, or that means something
// in one, by % and two hexadecimal digits.
func escaped(part string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(part) {
		if c <= ' ' || c > '~' || strings.IndexByte(",%"+separator+cutMark, c) >= 0 {
			b.Write([]byte{'%', digits[c>>4], digits[c&0xf]})
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
