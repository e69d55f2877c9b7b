package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/model"
)

// secretKeyFile holds the key of secrets in base64, unless a setting does.
const secretKeyFile = "secret.key"

// makeSecretKey writes a new key, unless a setting gives it.
func (f folder) makeSecretKey(setting config.SecretKey, random io.Reader) error {
	if setting != "" {
		return nil
	}
	key := make([]byte, model.KeySize)
	if _, err := io.ReadFull(random, key); err != nil {
		return fmt.Errorf("read random bytes for %s: %w", secretKeyFile, err)
	}
	return f.writeSecretKey([]byte(base64.StdEncoding.EncodeToString(key)))
}

// writeSecretKey keeps a key, which is in base64.
func (f folder) writeSecretKey(key []byte) error {
	return atomicfile.Write(f.path(secretKeyFile), append(bytes.TrimSpace(key), '\n'))
}

// secretKeyIDs names the keys by which secrets that are stored are encrypted.
type secretKeyIDs func(ctx context.Context) ([][]byte, error)

// openCipher returns what reads the secrets that are stored. A folder from
// before there were secrets has no key, and gets one; a folder whose secrets
// cannot be read is refused.
func (f folder) openCipher(ctx context.Context, setting config.SecretKey, stored secretKeyIDs) (*model.Cipher, error) {
	ids, err := stored(ctx)
	if err != nil {
		return nil, err
	}
	key, err := f.readSecretKey(setting)
	if errors.Is(err, os.ErrNotExist) && len(ids) == 0 {
		if err := f.makeSecretKey(setting, rand.Reader); err != nil {
			return nil, err
		}
		key, err = f.readSecretKey(setting)
	}
	return cipherOf(ids, key, err)
}

// cipherOf returns what reads the secrets of these ids by a key, or why there is
// none. A folder whose secrets cannot be read is refused.
func cipherOf(ids [][]byte, key []byte, err error) (*model.Cipher, error) {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, refuse("%s is missing, and API keys of model providers are encrypted by it: %s", secretKeyFile, keyHint)
	case err != nil:
		return nil, err
	}
	cipher, err := model.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use the key of secrets: %w", err)
	}
	for _, id := range ids {
		if !cipher.Owns(id) {
			return nil, refuse("API keys of model providers are encrypted by another key than this server's: %s", keyHint)
		}
	}
	return cipher, nil
}

// keyHint names what helps.
const keyHint = "give the right one by the setting secret_key (ACTIONPULSE_SECRET_KEY), the same for all servers of a database, " +
	"or restore the file that was backed up with this folder; if it is lost, delete the rows of model_providers"

// readSecretKey returns the key. The setting wins over the file.
func (f folder) readSecretKey(setting config.SecretKey) ([]byte, error) {
	if setting != "" {
		key, err := setting.Bytes()
		if err != nil {
			return nil, fmt.Errorf("secret_key: %w", err)
		}
		return key, nil
	}
	content, err := os.ReadFile(f.path(secretKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", secretKeyFile, err)
	}
	key, err := config.SecretKey(content).Bytes()
	if err != nil || key == nil {
		return nil, refuse("%s is malformed: %s", secretKeyFile, keyHint)
	}
	return key, nil
}
