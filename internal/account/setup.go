package account

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

const (
	// SetupTokenLifetime is how long the first access token works.
	SetupTokenLifetime = 24 * time.Hour
	// passwordLength characters hold 142 bits.
	passwordLength = 24
	emailLimit     = 254 // bytes
)

// SetupParams says what the first accounts are called.
type SetupParams struct {
	Organization string // 1–200 characters
	Project      string // 1–200 characters
	Email        string // the owner's
}

// SetupResult names what was made. The password and the secrets are not kept
// and cannot be had again.
type SetupResult struct {
	OrganizationID string
	UserID         string
	Email          string
	Password       string
	Project        Project
	AccessToken    string // works for SetupTokenLifetime
	BrowserToken   string
	ServerKey      string
	LegacyKey      string
	ProjectKey     string
	CIToken        string
}

// Setup makes, all or nothing, the first organization, its owner with a new
// password, one project and one credential of each kind. ErrExists: there are
// accounts already, and nothing was changed. Faults: validation_failed,
// unavailable.
func (s *Service) Setup(ctx context.Context, p SetupParams) (SetupResult, error) {
	if err := p.validate(); err != nil {
		return SetupResult{}, err
	}
	var result SetupResult
	record, err := s.newSetup(p, &result)
	if err != nil {
		return SetupResult{}, fmt.Errorf("prepare the first accounts: %w", err)
	}
	if err := s.newSetupCredentials(record, &result); err != nil {
		return SetupResult{}, fmt.Errorf("prepare the first credentials: %w", err)
	}
	if err := s.newSetupEntries(record); err != nil {
		return SetupResult{}, fmt.Errorf("prepare the first entries: %w", err)
	}
	number, err := s.store.CreateSetup(ctx, *record)
	if err != nil {
		return SetupResult{}, fmt.Errorf("store the first accounts: %w", err)
	}
	result.Project = record.Project
	result.Project.Number = number
	return result, nil
}

// validate checks what the operator may get wrong and writes the email in lower
// case.
func (p *SetupParams) validate() error {
	if err := credential.ValidateName("organization", p.Organization); err != nil {
		return err
	}
	if err := credential.ValidateName("project", p.Project); err != nil {
		return err
	}
	var err error
	p.Email, err = parseEmail(p.Email)
	return err
}

// parseEmail returns an email in lower case. Fault: validation_failed.
func parseEmail(email string) (string, error) {
	if !validEmail(email) {
		return "", fault.Field("email", "an email address has the form name@host")
	}
	return strings.ToLower(email), nil
}

func validEmail(email string) bool {
	name, host, found := strings.Cut(email, "@")
	bad := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	return found && name != "" && host != "" && !strings.Contains(host, "@") && len(email) <= emailLimit &&
		utf8.ValidString(email) && !strings.ContainsFunc(email, bad)
}

// newSetup makes everything but the credentials.
func (s *Service) newSetup(p SetupParams, result *SetupResult) (*SetupRecord, error) {
	now := s.clock()
	for _, ref := range []*string{&result.OrganizationID, &result.UserID, &result.Project.ID} {
		var err error
		if *ref, err = id.New(now, s.random); err != nil {
			return nil, err
		}
	}
	var err error
	if result.Password, err = credential.RandomText(s.random, passwordLength); err != nil {
		return nil, err
	}
	hash, err := HashPassword(result.Password, s.random)
	if err != nil {
		return nil, err
	}
	result.Email = p.Email
	return &SetupRecord{
		Organization: Organization{ID: result.OrganizationID, Name: p.Organization, CreatedAt: now},
		Owner:        User{ID: result.UserID, Email: p.Email, PasswordHash: hash, CreatedAt: now},
		Project: Project{
			ID: result.Project.ID, Name: p.Project, OrganizationID: result.OrganizationID, CreatedAt: now,
		},
	}, nil
}

// newSetupEntries adds what the audit log begins with: the operator has made
// an organization and a project.
func (s *Service) newSetupEntries(record *SetupRecord) error {
	e := env{clock: s.clock, random: s.random}
	organization, err := e.organizationEntry(record.Organization.ID, auditlog.Actor{}, auditlog.OrganizationCreated)
	if err != nil {
		return err
	}
	organization.Details = map[string]string{"name": record.Organization.Name}
	project, err := e.projectEntry(record.Project, auditlog.Actor{}, auditlog.ProjectCreated)
	record.Entries = []auditlog.Entry{organization, project}
	return err
}

// newSetupCredentials adds one credential of each kind to the record.
func (s *Service) newSetupCredentials(record *SetupRecord, result *SetupResult) error {
	now := record.Organization.CreatedAt
	for _, c := range []struct {
		kind   credential.Kind
		name   string
		secret *string
	}{
		{credential.Browser, "First browser token", &result.BrowserToken},
		{credential.Server, "First server key", &result.ServerKey},
		{credential.Legacy, "First legacy key", &result.LegacyKey},
		{credential.Project, "First project key", &result.ProjectKey},
		{credential.CI, "First CI token", &result.CIToken},
		{credential.Access, "Access token of the first day", &result.AccessToken},
	} {
		p := credential.CreateParams{
			Kind: c.kind, Name: c.name, OrganizationID: record.Organization.ID, ProjectID: record.Project.ID,
		}
		if c.kind == credential.Access {
			p.ProjectID, p.UserID, p.Lifetime = "", record.Owner.ID, SetupTokenLifetime
		}
		d, secret, err := credential.NewDraft(p, now, s.random)
		if err != nil {
			return err
		}
		*c.secret = secret
		record.Credentials = append(record.Credentials, d)
	}
	return nil
}
