package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// secretPrefix begins a secret; what follows is base64.
	secretPrefix = "whsec_"
	// secretBytes is how many random bytes a secret has.
	secretBytes = 32
)

// Secrets are what an endpoint's messages are signed with.
type Secrets struct {
	Current string
	// Old signs too, until OldUntil; empty if there is none.
	Old      string
	OldUntil time.Time
}

// Live are the secrets to sign with now, the current one first.
func (s Secrets) Live(now time.Time) []string {
	if s.Old != "" && now.Before(s.OldUntil) {
		return []string{s.Current, s.Old}
	}
	return []string{s.Current}
}

// rotate replaces the current secret; it signs beside the new one for a while.
// One that was old already ends.
func (s Secrets) rotate(fresh string, now time.Time, overlap time.Duration) Secrets {
	if overlap <= 0 {
		return Secrets{Current: fresh}
	}
	return Secrets{Current: fresh, Old: s.Current, OldUntil: now.Add(overlap)}
}

// mintSecret makes a secret.
func mintSecret(random io.Reader) (string, error) {
	var b [secretBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("read random bytes for a secret: %w", err)
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:]), nil
}

// Sign returns the value of the header webhook-signature: one signature for
// each secret.
func Sign(secrets []string, messageID string, at time.Time, body []byte) (string, error) {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil {
			return "", fmt.Errorf("read a secret: %w", err)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(messageID + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " "), nil
}
