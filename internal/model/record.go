package model

import (
	"context"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/publicnet"
)

const (
	// MaxProviders is how many providers a project may have, beside echo.
	MaxProviders = 50
	// DefaultTimeout is how long one call to a provider may take.
	DefaultTimeout = 2 * time.Minute

	urlLimit    = 2000 // bytes
	secretLimit = 2000 // bytes
	maxTimeout  = time.Hour
	maxRate     = 1_000_000
	maxAtOnce   = 10_000
)

var namePattern = regexp.MustCompile(NamePattern)

// ValidName reports whether a provider may have the name.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// Settings are what a project says of a provider, but for its secret.
type Settings struct {
	// BaseURL is http or https, at most 2,000 bytes.
	BaseURL string
	// Timeout limits one call.
	Timeout time.Duration
	// RequestsPerMinute and MaxConcurrent are the limits of each server; 0 is
	// none.
	RequestsPerMinute, MaxConcurrent int64
}

// Record is a provider of a project.
type Record struct {
	ProjectID, Name string
	Settings

	Sealed Sealed
	// CreatedAt and UpdatedAt are zero of echo, which was not made.
	CreatedAt, UpdatedAt time.Time
}

// Store keeps providers.
type Store interface {
	// PutProvider lets change make a provider of what there is, nil if there is
	// none, while nobody else changes it, and stores it with the entry. If
	// change returns nil, or there is none and the project has limit providers,
	// nothing is stored, and full tells the two apart.
	PutProvider(ctx context.Context, p PutParams) (full bool, err error)
	// FindProvider returns a provider and whether there is one.
	FindProvider(ctx context.Context, projectID, name string) (Record, bool, error)
	// ListProviders returns at most limit providers of a project with names
	// above after, in the order of the bytes of their names.
	ListProviders(ctx context.Context, projectID, after string, limit int) ([]Record, error)
	// DeleteProvider deletes a provider, stores the entry, and reports whether
	// there was one.
	DeleteProvider(ctx context.Context, projectID, name string, entry auditlog.Entry) (bool, error)
	// SecretKeyIDs names the keys that have encrypted the secrets there are.
	SecretKeyIDs(ctx context.Context) ([][]byte, error)
}

// PutParams says what to store.
type PutParams struct {
	ProjectID, Name string
	Limit           int
	// Change may run several times.
	Change func(before *Record) (*Record, auditlog.Entry, error)
}

// validate checks the settings. Fault: validation_failed, with the member at
// fault.
func (s *Settings) validate(allowPrivate bool) error {
	if err := validateURL(s.BaseURL, allowPrivate); err != nil {
		return err
	}
	switch {
	case s.Timeout < time.Second || s.Timeout > maxTimeout:
		return fault.Field("timeout_seconds", "timeout_seconds is a number from 1 to %d", int(maxTimeout.Seconds()))
	case s.RequestsPerMinute < 0 || s.RequestsPerMinute > maxRate:
		return fault.Field("requests_per_minute", "requests_per_minute is a number from 0, which is no limit, to %d", maxRate)
	case s.MaxConcurrent < 0 || s.MaxConcurrent > maxAtOnce:
		return fault.Field("max_concurrent", "max_concurrent is a number from 0, which is no limit, to %d", maxAtOnce)
	default:
		return nil
	}
}

// validateURL refuses what can never be called. What a name stands for is
// looked at when it is connected to, each time.
func validateURL(text string, allowPrivate bool) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > urlLimit || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return fault.Field("base_url", "base_url is an http or https URL of at most %d bytes", urlLimit)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fault.Field("base_url", "base_url must not hold a user, a password, parameters or a fragment: /chat/completions is added to it")
	}
	if address, err := netip.ParseAddr(u.Hostname()); err == nil && !allowPrivate && !publicnet.Is(address) {
		return fault.Field("base_url", "base_url must not be an address of a private network: the setting flows.allow_private lifts this")
	}
	return nil
}

// validateSecret refuses what cannot be sent in a header.
func validateSecret(s Secret) error {
	if len(s) > secretLimit || strings.ContainsFunc(string(s), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.Field("api_key", "api_key is a text of at most %d visible ASCII characters", secretLimit)
	}
	return nil
}

// sameHost reports whether two base URLs lead to the same place, as far as who
// gets the secret is concerned.
func sameHost(a, b string) bool {
	one, errOne := url.Parse(a)
	two, errTwo := url.Parse(b)
	return errOne == nil && errTwo == nil && one.Scheme == two.Scheme && strings.EqualFold(one.Host, two.Host)
}

// hostOf is what the audit log shows of a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
