package model

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// KeySize is how many bytes the server's key has.
const KeySize = 32

// What the server's key is used for: each use has a key of its own.
const (
	useEncrypt = "actionpulse: secrets of model providers, AES-256-GCM"
	useName    = "actionpulse: name of the key"
	keyIDSize  = 8
)

// ErrOtherKey is returned for a secret that another key has encrypted.
var ErrOtherKey = errors.New("it was encrypted by another key: the setting secret_key, or else the file secret.key, is not the one it was stored with")

// Cipher keeps the secrets of providers. Each is bound to its project and
// name: in another row it cannot be read.
type Cipher struct {
	aead cipher.AEAD
	id   []byte
}

// NewCipher returns a Cipher for the server's key of [KeySize] bytes.
func NewCipher(key []byte) (*Cipher, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("the key has %d bytes, not %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(derive(key, useEncrypt))
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return &Cipher{aead: aead, id: derive(key, useName)[:keyIDSize]}, nil
}

func derive(key []byte, use string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(use))
	return mac.Sum(nil)
}

// KeyID names the key. It tells nothing of it.
func (c *Cipher) KeyID() []byte { return c.id }

// Owns reports whether a key id is that of this key.
func (c *Cipher) Owns(id []byte) bool { return bytes.Equal(c.id, id) }

// Sealed is a secret as it is stored; the zero Sealed is none.
type Sealed struct {
	// Bytes are the nonce and what was encrypted.
	Bytes []byte
	// KeyID names the key.
	KeyID []byte
	// Prefix and LastFour are what is shown; empty of a short secret.
	Prefix, LastFour string
}

// seal encrypts the secret of a provider.
func (c *Cipher) seal(random io.Reader, r *Record, secret Secret) (Sealed, error) {
	if secret == "" {
		return Sealed{}, nil
	}
	nonce := make([]byte, c.aead.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return Sealed{}, fmt.Errorf("read random bytes for a secret: %w", err)
	}
	s := Sealed{Bytes: c.aead.Seal(nonce, nonce, []byte(secret), bound(r)), KeyID: c.id}
	if len(secret) >= shownFrom {
		s.Prefix, s.LastFour = string(secret[:shown]), string(secret[len(secret)-shown:])
	}
	return s, nil
}

const (
	// shown is how much of each end of a secret is shown, in bytes, of one
	// that has at least shownFrom.
	shown     = 4
	shownFrom = 20
)

// open decrypts the secret of a provider. It returns ErrOtherKey if another
// key has encrypted it.
func (c *Cipher) open(r *Record) (Secret, error) {
	if len(r.Sealed.Bytes) == 0 {
		return "", nil
	}
	if !c.Owns(r.Sealed.KeyID) {
		return "", ErrOtherKey
	}
	size := c.aead.NonceSize()
	if len(r.Sealed.Bytes) < size {
		return "", errors.New("a stored secret is too short")
	}
	secret, err := c.aead.Open(nil, r.Sealed.Bytes[:size], r.Sealed.Bytes[size:], bound(r))
	if err != nil {
		return "", fmt.Errorf("decrypt a secret: %w", err)
	}
	return Secret(secret), nil
}

// bound is what a secret belongs to. Neither part can hold the separator.
func bound(r *Record) []byte { return []byte(r.ProjectID + "\x00" + r.Name) }
