package credential

import (
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

const (
	nameLimit    = 200 // characters
	originsLimit = 100
	originLimit  = 300 // bytes
	rateLimit    = 1_000_000_000
)

// CreateParams describes a credential to be made.
type CreateParams struct {
	Kind           Kind
	Name           string // 1–200 characters
	OrganizationID string
	// ProjectID is required for every kind but Access.
	ProjectID string
	// UserID is required for Access, and only allowed there.
	UserID string
	// SessionID is the session that an access token belongs to, if any.
	SessionID string
	// Origins are for Browser only, such as https://shop.example.
	Origins []string
	// Rate and Burst are as in Credential, for kinds that send events.
	Rate  *float64
	Burst *int
	// Lifetime is how long the credential works; 0 means until it is revoked,
	// which Access does not allow.
	Lifetime time.Duration
	// Actor is who makes it, for the audit log.
	Actor auditlog.Actor
}

// Draft is a credential that is about to be stored.
type Draft struct {
	ID             string
	Kind           Kind
	Name           string
	OrganizationID string
	ProjectID      string
	UserID         string
	SessionID      string
	Origins        []string
	Rate           *float64
	Burst          *int
	Hash           Hash
	Prefix         string
	LastFour       string
	CreatedAt      time.Time
	ExpiresAt      time.Time // zero: never
}

// NewDraft makes the secret and the draft of a credential. It stores nothing.
// Errors: the fault validation_failed naming the member at fault, or a failure
// of random.
func NewDraft(p CreateParams, now time.Time, random io.Reader) (d Draft, secret string, err error) {
	if _, ok := prefixes[p.Kind]; !ok {
		return Draft{}, "", fault.Field("kind", "there is no such kind of credential")
	}
	if secret, err = mint(p.Kind, random); err != nil {
		return Draft{}, "", err
	}
	d, err = newDraft(p, secret, now, random)
	if err != nil {
		return Draft{}, "", err
	}
	d.Prefix = prefixes[p.Kind]
	d.LastFour = secret[len(secret)-4:]
	return d, secret, nil
}

// newDraft makes the draft for a secret that exists.
func newDraft(p CreateParams, secret string, now time.Time, random io.Reader) (Draft, error) {
	origins, err := p.validate()
	if err != nil {
		return Draft{}, err
	}
	ref, err := id.New(now, random)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{
		ID: ref, Kind: p.Kind, Name: p.Name,
		OrganizationID: p.OrganizationID, ProjectID: p.ProjectID, UserID: p.UserID, SessionID: p.SessionID,
		Origins: origins, Rate: p.Rate, Burst: p.Burst,
		Hash: HashSecret(secret), CreatedAt: now,
	}
	d.Prefix, d.LastFour = shown(secret)
	if p.Lifetime > 0 {
		d.ExpiresAt = now.Add(p.Lifetime)
	}
	return d, nil
}

// validate checks what the caller may get wrong and returns the origins as a
// browser writes them.
func (p *CreateParams) validate() ([]string, error) {
	if err := ValidateName("name", p.Name); err != nil {
		return nil, err
	}
	if err := p.validateOwner(); err != nil {
		return nil, err
	}
	if err := p.validateRate(); err != nil {
		return nil, err
	}
	if p.Kind != Browser && len(p.Origins) > 0 {
		return nil, fault.Field("origins", "only browser tokens have origins")
	}
	return parseOrigins(p.Origins)
}

func (p *CreateParams) validateOwner() error {
	access := p.Kind == Access
	switch {
	case access && p.UserID == "":
		return fault.Field("user_id", "an access token needs a user")
	case !access && p.UserID+p.SessionID != "":
		return fault.Field("user_id", "only access tokens have a user")
	case access && p.ProjectID != "":
		return fault.Field("project_id", "an access token has no project")
	case !access && p.ProjectID == "":
		return fault.Field("project_id", "the credential needs a project")
	case p.Lifetime < 0 || access && p.Lifetime == 0:
		return fault.Field("lifetime", "the lifetime must be positive")
	default:
		return nil
	}
}

func (p *CreateParams) validateRate() error {
	switch {
	case !p.Kind.Ingest() && (p.Rate != nil || p.Burst != nil):
		return fault.Field("rate", "only keys that send events have a rate")
	case p.Rate != nil && (math.IsNaN(*p.Rate) || *p.Rate < 0 || *p.Rate > rateLimit):
		return fault.Field("rate", "the rate must be between 0 and %d requests a second", rateLimit)
	case p.Burst != nil && (*p.Burst < 1 || *p.Burst > rateLimit):
		return fault.Field("burst", "the burst must be between 1 and %d requests", rateLimit)
	default:
		return nil
	}
}

// ValidateName returns the fault validation_failed, naming the field, unless
// name has 1–200 characters, none of them a control character, and is not
// blank.
func ValidateName(field, name string) error {
	n := utf8.RuneCountInString(name)
	if !utf8.ValidString(name) || n > nameLimit || strings.TrimSpace(name) == "" || strings.ContainsFunc(name, unicode.IsControl) {
		return fault.Field(field, "a name has 1 to %d characters, not only spaces and no control characters", nameLimit)
	}
	return nil
}

// parseOrigins returns the origins in the form of the Origin header: scheme
// and host in lower case, no port where it is the scheme's own. Doubles are
// dropped.
func parseOrigins(origins []string) ([]string, error) {
	if len(origins) > originsLimit {
		return nil, fault.Field("origins", "at most %d origins", originsLimit)
	}
	var out []string
	for _, o := range origins {
		parsed, ok := parseOrigin(o)
		if !ok {
			return nil, fault.Field("origins", "an origin is scheme://host or scheme://host:port, nothing else")
		}
		if !slices.Contains(out, parsed) {
			out = append(out, parsed)
		}
	}
	return out, nil
}

// hostCharacters are those of a host in lower case, its xn-- form where it is
// not ASCII, of an address and of a port.
const hostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-._:[]"

func notInHost(r rune) bool { return !strings.ContainsRune(hostCharacters, r) }

func parseOrigin(origin string) (string, bool) {
	u, err := url.Parse(origin)
	if err != nil || len(origin) > originLimit || u.Scheme == "" || u.Hostname() == "" {
		return "", false
	}
	host := strings.ToLower(u.Host)
	// Nothing may follow or surround scheme and host but one final slash.
	if strings.TrimSuffix(strings.ToLower(origin), "/") != u.Scheme+"://"+host || strings.ContainsFunc(host, notInHost) {
		return "", false
	}
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + strings.TrimSuffix(host, ":"), true
}
