package model

import "time"

// Secret is a provider's API key. It prints and marshals as nothing of it;
// string(s) is the whole.
type Secret string

// hidden stands where a secret was.
const hidden = "xxxxx"

// String keeps the secret out of what is printed and logged.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString keeps it out of %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps it out of JSON and of structured logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Connection is what is needed to call a provider.
type Connection struct {
	// BaseURL is what the path of a method is added to, without a slash at its
	// end.
	BaseURL string
	// APIKey is empty if the provider wants none.
	APIKey Secret
	// Timeout limits one call; 0 is no limit but the context's.
	Timeout time.Duration
	// RequestsPerMinute and MaxConcurrent are limits of this process; 0 is
	// none.
	RequestsPerMinute, MaxConcurrent int64
}

// NamePattern is what the name of a provider matches.
const NamePattern = `^[a-z0-9_-]{1,64}$`
