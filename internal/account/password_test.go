package account

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	const password = "пароль correct horse"
	hash, err := HashPassword(password, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hash %s", hash)
	}
	for candidate, want := range map[string]bool{password: true, password + " ": false, "": false, strings.ToUpper(password): false} {
		if got, err := VerifyPassword(candidate, hash); got != want || err != nil {
			t.Errorf("%q: %v, %v", candidate, got, err)
		}
	}
	again, err := HashPassword(password, rand.Reader)
	if err != nil || again == hash {
		t.Errorf("two hashes are equal, %v", err)
	}
	if _, err := HashPassword(password, bytes.NewReader(make([]byte, saltLength-1))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short of random bytes: got %v", err)
	}
}

// TestVerifyPasswordOfOthers reads a hash made by the reference implementation
// with another cost.
func TestVerifyPasswordOfOthers(t *testing.T) {
	t.Parallel()
	// echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 32
	const hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, err := VerifyPassword("password", hash); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestVerifyPasswordRefuses(t *testing.T) {
	t.Parallel()
	const sum = "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, hash := range []string{
		"", "password", "$argon2i$v=19$m=65536,t=2,p=1" + sum, "$argon2id$v=16$m=65536,t=2,p=1" + sum,
		"$argon2id$v=19$m=4294967295,t=2,p=1" + sum, "$argon2id$v=19$m=65536,t=0,p=1" + sum,
		"$argon2id$v=19$m=65536,t=2,p=0" + sum, "$argon2id$v=19$m=65536,t=1000,p=1" + sum,
		"$argon2id$v=19$m=65536,t=2,p=1,x=1" + sum, "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$",
		"$argon2id$v=19$m=65536,t=2,p=1$!$CTFh", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ",
	} {
		if ok, err := VerifyPassword("password", hash); ok || err == nil {
			t.Errorf("%s: %v, %v", hash, ok, err)
		}
	}
}
