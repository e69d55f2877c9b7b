package account

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The cost of a new hash: 19 MiB, two passes, one lane, the least that OWASP
// recommends for argon2id. Hashes carry their own cost, so it can be raised.
const (
	argonMemory = 19 * 1024 // KiB
	argonPasses = 2
	argonLanes  = 1
	saltLength  = 16
	hashLength  = 32

	// The limits on a stored hash's cost guard against a row that would take
	// all memory.
	argonMemoryLimit = 1 << 20 // KiB
	argonPassesLimit = 64
)

var errPasswordHash = errors.New("the stored password hash cannot be read")

// HashPassword returns the argon2id hash of a password as a PHC string,
// $argon2id$v=19$m=…,t=…,p=…$salt$hash.
func HashPassword(password string, random io.Reader) (string, error) {
	salt := make([]byte, saltLength)
	if _, err := io.ReadFull(random, salt); err != nil {
		return "", fmt.Errorf("read random bytes for a salt: %w", err)
	}
	hash := argon2.IDKey([]byte(password), salt, argonPasses, argonMemory, argonLanes, hashLength)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonPasses, argonLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash)), nil
}

// VerifyPassword reports whether a password belongs to a hash made by
// HashPassword. The error says that the hash cannot be read.
func VerifyPassword(password, phc string) (bool, error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return false, errPasswordHash
	}
	var memory, passes uint32
	var lanes uint8
	_, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes)
	exact := fmt.Sprintf("m=%d,t=%d,p=%d", memory, passes, lanes) == parts[3]
	if err != nil || !exact || memory > argonMemoryLimit || passes < 1 || passes > argonPassesLimit || lanes < 1 {
		return false, errPasswordHash
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	want, hashErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || hashErr != nil || len(want) != hashLength {
		return false, errPasswordHash
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, lanes, hashLength)
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}
