package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/model"
)

func keyOf(b byte) config.SecretKey {
	return config.SecretKey(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, model.KeySize)))
}

// idOf is the id of a key, as it would be stored.
func idOf(t *testing.T, key config.SecretKey) []byte {
	t.Helper()
	b, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.NewCipher(b)
	if err != nil {
		t.Fatal(err)
	}
	return c.KeyID()
}

// storing says that secrets are stored that these keys have encrypted.
func storing(ids ...[]byte) secretKeyIDs {
	return func(context.Context) ([][]byte, error) { return ids, nil }
}

// TestSecretKeyIsMadeOnce: a folder without one gets it while there is nothing
// to read, and keeps it.
func TestSecretKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := folder(t.TempDir())
	first, err := f.openCipher(t.Context(), "", storing())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.path(secretKeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	again, err := f.openCipher(t.Context(), "", storing(first.KeyID()))
	if err != nil || !bytes.Equal(again.KeyID(), first.KeyID()) {
		t.Errorf("another key: %v", err)
	}
	other := folder(t.TempDir())
	if second, err := other.openCipher(t.Context(), "", storing()); err != nil || bytes.Equal(second.KeyID(), first.KeyID()) {
		t.Errorf("two folders have one key: %v", err)
	}
}

// TestSecretKeySetting: it wins over the file, and no file is made beside it.
func TestSecretKeySetting(t *testing.T) {
	t.Parallel()
	f := folder(t.TempDir())
	if err := f.makeSecretKey(keyOf(1), nil); err != nil {
		t.Fatal(err)
	}
	c, err := f.openCipher(t.Context(), keyOf(1), storing(idOf(t, keyOf(1))))
	if err != nil || !bytes.Equal(c.KeyID(), idOf(t, keyOf(1))) {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.path(secretKeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

// TestSecretsThatCannotBeRead: the folder is refused, nothing is made in place
// of what is missing, and the setting is named.
func TestSecretsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	mine, theirs := idOf(t, keyOf(1)), idOf(t, keyOf(2))
	for name, c := range map[string]struct {
		file    string
		setting config.SecretKey
		stored  secretKeyIDs
	}{
		"the file is lost":     {"", "", storing(mine)},
		"another file":         {string(keyOf(1)), "", storing(theirs)},
		"another setting":      {string(keyOf(2)), keyOf(1), storing(theirs)},
		"of two servers":       {"", keyOf(1), storing(mine, theirs)},
		"the file is empty":    {" ", "", storing()},
		"the file is cut":      {string(keyOf(1))[:20], "", storing()},
		"the file is all else": {"hello", "", storing()},
	} {
		f := folder(t.TempDir())
		if c.file != "" {
			if err := os.WriteFile(f.path(secretKeyFile), []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := f.openCipher(t.Context(), c.setting, c.stored)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "secret_key") {
			t.Errorf("%s: %v", name, err)
		}
		if content, err := os.ReadFile(f.path(secretKeyFile)); string(content) != c.file {
			t.Errorf("%s: the file is %q, %v", name, content, err)
		}
	}
}
