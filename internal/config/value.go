package config

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strconv"
	"strings"
)

// DatabaseURL is the address of a database, and holds its password. It prints,
// logs and marshals without it; string(u) is the whole.
type DatabaseURL string

// redacted stands where a secret was.
const redacted = "xxxxx"

// String returns the address without its secrets.
func (u DatabaseURL) String() string {
	if u == "" {
		return ""
	}
	parsed, err := url.Parse(string(u))
	if err != nil {
		return redacted
	}
	query := parsed.Query()
	for name := range query {
		if strings.Contains(strings.ToLower(name), "pass") {
			query.Set(name, redacted)
		}
	}
	parsed.RawQuery = query.Encode()
	return parsed.Redacted()
}

// GoString keeps %#v from printing the password.
func (u DatabaseURL) GoString() string { return strconv.Quote(u.String()) }

// LogValue keeps the password out of logs.
func (u DatabaseURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText keeps the password out of JSON.
func (u DatabaseURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// SecretKey is a key in base64. It prints, logs and marshals as nothing of it;
// string(k) is the whole.
type SecretKey string

// secretKeySize is how many bytes the key has.
const secretKeySize = 32

// Bytes returns the key, nil if there is none.
func (k SecretKey) Bytes() ([]byte, error) {
	if k == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(k)))
	if err != nil || len(key) != secretKeySize {
		return nil, fmt.Errorf("must be %d bytes in base64, as `openssl rand -base64 %d` prints them", secretKeySize, secretKeySize)
	}
	return key, nil
}

// String keeps the key out of what is printed.
func (k SecretKey) String() string {
	if k == "" {
		return ""
	}
	return redacted
}

// GoString keeps it out of %#v.
func (k SecretKey) GoString() string { return strconv.Quote(k.String()) }

// LogValue keeps it out of logs.
func (k SecretKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText keeps it out of JSON.
func (k SecretKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Size is a number of bytes.
type Size int64

// units are the suffixes of a size, longest first.
var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// UnmarshalText reads a number with or without a unit: 2000000000, 2GB, 1.5 GiB.
func (s *Size) UnmarshalText(text []byte) error {
	digits, factor := strings.TrimSpace(string(text)), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*factor >= math.MaxInt64 {
		return fmt.Errorf("expected a size such as 2GB or 512MiB but got %q", text)
	}
	*s = Size(n * factor)
	return nil
}
