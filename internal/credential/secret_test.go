package credential

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMint(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^ap[bslkct]_[0-9A-Za-z]{36}$`)
	seen := map[string]bool{}
	for kind, prefix := range prefixes {
		for range 200 {
			secret, err := mint(kind, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			if !form.MatchString(secret) || !strings.HasPrefix(secret, prefix) || seen[secret] {
				t.Fatalf("%s: bad or repeated secret %s", kind, secret)
			}
			seen[secret] = true
			if got, ok := Recognize(secret); !ok || got != kind {
				t.Fatalf("%s is not recognised: %s, %v", secret, got, ok)
			}
		}
	}
	if _, err := mint("root", rand.Reader); err == nil {
		t.Error("an unknown kind got a secret")
	}
	if _, err := mint(Server, bytes.NewReader(make([]byte, 29))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short of random bytes: got %v", err)
	}
}

// TestChecksumIsFixed: scanners outside know this form; it must never change.
func TestChecksumIsFixed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "000000",
		"123456789":                          "3jZRME", // CRC-32 cbf43926, the check value of the polynomial
		"aps_000000000000000000000000000000": "2Wx2tl",
	} {
		if got := checksum(text); got != want {
			t.Errorf("checksum(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestRecognizeFindsTypos: no single changed character passes.
func TestRecognizeFindsTypos(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret, err := mint(Browser, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(secret)-1).Draw(t, "at")
		b := []byte(secret)
		b[at] = rapid.Byte().Filter(func(c byte) bool { return c != b[at] }).Draw(t, "instead")
		if kind, ok := Recognize(string(b)); ok {
			t.Fatalf("%q passes as %s", b, kind)
		}
	})
	for _, text := range []string{"", "apb_", "apb_short", "sk_live_000000000000000000000000000000000000"} {
		if _, ok := Recognize(text); ok {
			t.Errorf("%q is recognised", text)
		}
	}
}

// TestRandomTextIsFair: bytes that would favour some characters are thrown
// away, so each character comes from exactly four byte values.
func TestRandomTextIsFair(t *testing.T) {
	t.Parallel()
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	const fair = 248
	text, err := RandomText(bytes.NewReader(all[:]), fair)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range alphabet {
		if n := strings.Count(text, string(c)); n != 4 {
			t.Errorf("%c comes from %d byte values, want 4", c, n)
		}
	}
	text, err = RandomText(bytes.NewReader(append(bytes.Repeat([]byte{255}, 3), 0, 1, 2)), 3)
	if err != nil || text != "012" {
		t.Errorf("got %q, %v; the bytes past 247 are to be passed over", text, err)
	}
}

func TestShownKeepsMostHidden(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.String().Draw(t, "secret")
		prefix, last := shown(secret)
		n := len([]rune(secret))
		if len([]rune(prefix))+len([]rune(last)) > n/4 || len([]rune(last)) > 4 {
			t.Fatalf("of %d characters %q and %q are shown", n, prefix, last)
		}
	})
}
