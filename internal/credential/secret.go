package credential

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

const (
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// bodyLength characters of the alphabet hold 178 bits.
	bodyLength = 30
	// checksumLength characters of the alphabet hold the 32 bits of a CRC.
	checksumLength = 6
	// secretLimit is the longest secret that is looked up, in bytes.
	secretLimit = 512
)

// prefixes are what secrets made here begin with. They help people and
// scanners; nothing is decided by them.
var prefixes = map[Kind]string{
	Browser: "apb_",
	Server:  "aps_",
	Legacy:  "apl_",
	Project: "apk_",
	CI:      "apc_",
	Access:  "apt_",
}

// Hash is the SHA-256 of a secret. Secrets made here are random and long, so a
// slow hash would add nothing.
type Hash [sha256.Size]byte

// HashSecret returns the hash under which a secret is stored.
func HashSecret(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// The prefixes of secrets that are no credentials: nothing can be called with
// them but the one method that takes them.
const (
	RefreshPrefix    = "apr_"
	InvitationPrefix = "apn_"
)

// mint makes the secret of a credential of a kind.
func mint(kind Kind, random io.Reader) (string, error) {
	prefix, ok := prefixes[kind]
	if !ok {
		return "", fmt.Errorf("there is no credential kind %q", kind)
	}
	return Mint(prefix, random)
}

// Mint makes a secret: the prefix, 30 random characters and 6 of checksum.
func Mint(prefix string, random io.Reader) (string, error) {
	body, err := RandomText(random, bodyLength)
	if err != nil {
		return "", err
	}
	return prefix + body + checksum(prefix+body), nil
}

// RandomText returns n random letters and digits, each with 5.95 bits.
func RandomText(random io.Reader, n int) (string, error) {
	// The highest multiple of 62 in a byte: what lies above would make some
	// characters likelier than others, and is thrown away.
	const fair = 256 / len(alphabet) * len(alphabet)
	out := make([]byte, 0, n)
	buffer := make([]byte, n)
	for len(out) < n {
		missing := buffer[:n-len(out)]
		if _, err := io.ReadFull(random, missing); err != nil {
			return "", fmt.Errorf("read random bytes for a secret: %w", err)
		}
		for _, b := range missing {
			if int(b) < fair {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out), nil
}

// checksum is the CRC-32 of the text, IEEE polynomial, written with the
// alphabet and padded to six characters.
func checksum(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	var out [checksumLength]byte
	for i := range out {
		out[checksumLength-1-i] = alphabet[sum%uint32(len(alphabet))]
		sum /= uint32(len(alphabet))
	}
	return string(out[:])
}

// Recognize reports whether text has the form of a secret made here, checksum
// included, and of which kind it was made. It is for tools that look for
// leaked secrets: whether a secret is valid, and its kind, only the store says.
func Recognize(text string) (Kind, bool) {
	for kind, prefix := range prefixes {
		if len(text) != len(prefix)+bodyLength+checksumLength || !strings.HasPrefix(text, prefix) {
			continue
		}
		end := len(text) - checksumLength
		return kind, text[end:] == checksum(text[:end])
	}
	return "", false
}

// shown returns what may be shown of a secret. Of one made elsewhere, which
// may be short, at most a quarter is shown.
func shown(secret string) (prefix, lastFour string) {
	r := []rune(secret)
	n := min(len(r)/8, 4)
	return string(r[:n]), string(r[len(r)-n:])
}
