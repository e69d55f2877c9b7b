package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/config"
)

// OrganizationParams say whose organizations are meant.
type OrganizationParams struct {
	Config config.Folder
	Log    *slog.Logger
}

// Organization is one as the operator sees it.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	// SuspendedAt is nil while it is not suspended.
	SuspendedAt *time.Time `json:"suspended_at"`
}

// organizationCommand is what an operator does with organizations, by the name
// that it has on the listener for commands.
type organizationCommand string

const (
	listOrganizations   organizationCommand = "/organizations/list"
	suspendOrganization organizationCommand = "/organizations/suspend"
	resumeOrganization  organizationCommand = "/organizations/resume"
)

// organizationPage is how many organizations are read at once.
const organizationPage = 200

// ListOrganizations returns all organizations in order of id. If a server
// holds the folder, it is asked. Errors wrap ErrRefused if the accounts cannot
// be opened.
func ListOrganizations(ctx context.Context, p OrganizationParams) ([]Organization, error) {
	return p.do(ctx, listOrganizations, "")
}

// SuspendOrganization has every credential of an organization refused until it
// is resumed, from now on, also by a server that runs. Suspending again changes
// nothing. Errors are those of ListOrganizations, and the fault not_found.
func SuspendOrganization(ctx context.Context, p OrganizationParams, organizationID string) error {
	_, err := p.do(ctx, suspendOrganization, organizationID)
	return err
}

// ResumeOrganization ends a suspension, as SuspendOrganization begins it.
func ResumeOrganization(ctx context.Context, p OrganizationParams, organizationID string) error {
	_, err := p.do(ctx, resumeOrganization, organizationID)
	return err
}

// do runs a command here or, if a server holds the folder, there.
func (p OrganizationParams) do(ctx context.Context, c organizationCommand, organizationID string) ([]Organization, error) {
	f := folder(p.Config.Data)
	s, _, err := f.openAccounts(ctx, openParams{Database: p.Config.Database, Log: p.Log})
	if errors.Is(err, errLocked) {
		var all []Organization
		err := f.ask(ctx, string(c), organizationID, &all)
		return all, err
	}
	if err != nil {
		return nil, err
	}
	_, accounts := newAccounts(s.sql)
	all, err := c.run(ctx, accounts.Organizations, organizationID)
	return all, errors.Join(err, s.close())
}

// run does the command. The operator needs no role.
func (c organizationCommand) run(
	ctx context.Context, service *account.Organizations, organizationID string,
) ([]Organization, error) {
	switch c {
	case suspendOrganization:
		return nil, service.Suspend(ctx, auditlog.Actor{}, organizationID)
	case resumeOrganization:
		return nil, service.Resume(ctx, auditlog.Actor{}, organizationID)
	default:
		return allOrganizations(ctx, service)
	}
}

func allOrganizations(ctx context.Context, service *account.Organizations) ([]Organization, error) {
	all := []Organization{}
	for after := ""; ; after = all[len(all)-1].ID {
		page, err := service.ListAll(ctx, after, organizationPage)
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			shown := Organization{ID: o.ID, Name: o.Name, CreatedAt: o.CreatedAt}
			if !o.SuspendedAt.IsZero() {
				shown.SuspendedAt = &o.SuspendedAt
			}
			all = append(all, shown)
		}
		if len(page) < organizationPage {
			return all, nil
		}
	}
}

// organizationCommands are the commands that a server takes.
func organizationCommands(service *account.Organizations) map[string]controlCommand {
	commands := map[string]controlCommand{}
	for _, c := range []organizationCommand{listOrganizations, suspendOrganization, resumeOrganization} {
		commands[string(c)] = func(ctx context.Context, body io.Reader) (any, error) {
			var organizationID string
			if err := json.NewDecoder(body).Decode(&organizationID); err != nil {
				return nil, fmt.Errorf("read the command: %w", err)
			}
			return c.run(ctx, service, organizationID)
		}
	}
	return commands
}
