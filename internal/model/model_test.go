package model

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// TestSecretsDoNotPrint: whatever prints, logs or marshals a connection shows
// nothing of its key.
func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	c := Connection{BaseURL: "https://x", APIKey: "sesame"}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "key", c.APIKey, "all", c)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v %s %q", c, c, c.APIKey, c.APIKey), string(encoded), logged.String()} {
		if strings.Contains(text, "sesame") || !strings.Contains(text, "xxxxx") {
			t.Error(text)
		}
	}
	if Secret("").String() != "" {
		t.Error("no secret prints as one")
	}
}

func TestCipher(t *testing.T) {
	t.Parallel()
	if _, err := NewCipher(make([]byte, 16)); err == nil {
		t.Error("a short key is taken")
	}
	c, err := NewCipher(bytes.Repeat([]byte{7}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r := &Record{ProjectID: "p", Name: "n"}
	if r.Sealed, err = c.seal(rand.Reader, r, "sesame, open wide please"); err != nil {
		t.Fatal(err)
	}
	if got, err := c.open(r); err != nil || got != "sesame, open wide please" {
		t.Error(got, err)
	}
	again, err := c.seal(rand.Reader, r, "sesame, open wide please")
	if err != nil || bytes.Equal(again.Bytes, r.Sealed.Bytes) || !bytes.Equal(again.KeyID, r.Sealed.KeyID) {
		t.Error("two encryptions of one text are equal, or of two keys")
	}
	for i := range r.Sealed.Bytes {
		damaged := *r
		damaged.Sealed.Bytes = bytes.Clone(r.Sealed.Bytes)
		damaged.Sealed.Bytes[i] ^= 1
		if _, err := c.open(&damaged); err == nil || errors.Is(err, ErrOtherKey) {
			t.Fatalf("with byte %d changed: %v", i, err)
		}
	}
	for _, moved := range []Record{{ProjectID: "q", Name: "n", Sealed: r.Sealed}, {ProjectID: "p", Name: "m", Sealed: r.Sealed}} {
		if _, err := c.open(&moved); err == nil {
			t.Errorf("it is read as that of %s/%s", moved.ProjectID, moved.Name)
		}
	}
	if short, err := c.seal(rand.Reader, r, "0123456789abcdef"); err != nil || short.Prefix+short.LastFour != "" {
		t.Errorf("%+v: half of a short secret is shown", short)
	}
	if none, err := c.seal(rand.Reader, r, ""); err != nil || none.Bytes != nil {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestValidateURL(t *testing.T) {
	t.Parallel()
	for url, private := range map[string]bool{
		"https://api.example.com/v1": false, "http://x": false, "http://localhost:11434/v1": false, "http://10.0.0.1": true, "http://[::1]:80/v1": true,
	} {
		if err := validateURL(url, true); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if err := validateURL(url, false); (err != nil) != private || (private && !strings.Contains(err.Error(), "flows.allow_private")) {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"", "x", "ftp://x", "https://", "https://a:b@x", "https://x/?a=b", "https://x/#f", "https://x/ y", "https://x/" + strings.Repeat("a", 2000)} {
		if err := validateURL(url, true); fault.CodeOf(err) != api.CodeValidationFailed {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, s := range []Secret{"a b", "ü", "a\n", "a\x00", Secret(strings.Repeat("a", 2001))} {
		if err := validateSecret(s); fault.CodeOf(err) != api.CodeValidationFailed {
			t.Errorf("%q: %v", string(s), err)
		}
	}
}
