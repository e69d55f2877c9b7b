package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/actionpulse/actionpulse/internal/config"
)

// secretKeyInSettings is the manifest's word for a key that is in no file of the
// backup.
const secretKeyInSettings = "settings"

// checkSecrets refuses a folder whose secrets nobody could read after a restore,
// and notes that their key is in settings which are not copied.
func (b *backupRun) checkSecrets(ctx context.Context, database snapshotCopy) error {
	if err := b.folder.checkCipher(ctx, b.params.Config.SecretKey, database.SecretKeyIDs); err != nil {
		return err
	}
	own, err := b.folder.settingsKey()
	if err != nil {
		return err
	}
	if b.folder.checkCipher(ctx, own, database.SecretKeyIDs) != nil {
		b.secretKey = secretKeyInSettings
	}
	return nil
}

// checkCipher refuses a folder whose secrets cannot be read by its key, which is
// the setting, or else the file. Nothing is made: without secrets no key need be
// there.
func (f folder) checkCipher(ctx context.Context, setting config.SecretKey, stored secretKeyIDs) error {
	ids, err := stored(ctx)
	if err != nil {
		return err
	}
	key, err := f.readSecretKey(setting)
	if errors.Is(err, os.ErrNotExist) && len(ids) == 0 {
		return nil
	}
	_, err = cipherOf(ids, key, err)
	return err
}

// settingsKey returns the key that the folder's own settings file gives, if
// there is one.
func (f folder) settingsKey() (config.SecretKey, error) {
	content, err := os.ReadFile(f.path(settings))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", settings, err)
	}
	var said struct {
		SecretKey config.SecretKey `json:"secret_key"`
	}
	if err := json.Unmarshal(content, &said); err != nil {
		return "", nil //nolint:nilerr // whoever reads the settings complains
	}
	return said.SecretKey, nil
}
