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
	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/retention"
)

// OrganizationParams say whose organizations are meant.
type OrganizationParams struct {
	Config config.Folder
	// Quota holds the plans that there are; only SetOrganizationPlan looks at
	// it, and a server that holds the folder looks at its own.
	Quota config.Quota
	Log   *slog.Logger
}

// Organization is one as the operator sees it.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	// SuspendedAt is nil while it is not suspended.
	SuspendedAt *time.Time `json:"suspended_at"`
	// Plan is nil for the default one.
	Plan *string `json:"plan"`
}

// organizationCommand is what an operator does with organizations, by the name
// that it has on the listener for commands.
type organizationCommand string

const (
	listOrganizations   organizationCommand = "/organizations/list"
	suspendOrganization organizationCommand = "/organizations/suspend"
	resumeOrganization  organizationCommand = "/organizations/resume"
	planOrganization    organizationCommand = "/organizations/plan"
)

// organizationTarget is the body of a command: which organization is meant, and
// which plan it gets.
type organizationTarget struct {
	ID   string `json:"id"`
	Plan string `json:"plan"`
}

// organizationPage is how many organizations are read at once.
const organizationPage = 200

// ListOrganizations returns all organizations in order of id. If a server
// holds the folder, it is asked. Errors wrap ErrRefused if the accounts cannot
// be opened.
func ListOrganizations(ctx context.Context, p OrganizationParams) ([]Organization, error) {
	return p.do(ctx, listOrganizations, organizationTarget{})
}

// SuspendOrganization has every credential of an organization refused until it
// is resumed, from now on, also by a server that runs. Suspending again changes
// nothing. Errors are those of ListOrganizations, and the fault not_found.
func SuspendOrganization(ctx context.Context, p OrganizationParams, organizationID string) error {
	_, err := p.do(ctx, suspendOrganization, organizationTarget{ID: organizationID})
	return err
}

// ResumeOrganization ends a suspension, as SuspendOrganization begins it.
func ResumeOrganization(ctx context.Context, p OrganizationParams, organizationID string) error {
	_, err := p.do(ctx, resumeOrganization, organizationTarget{ID: organizationID})
	return err
}

// SetOrganizationPlan gives an organization a plan of its own from now on, also
// with a server that runs, or the default one if plan is empty. The same plan
// again changes nothing. It refuses a plan that the settings do not have. Errors
// are those of SuspendOrganization.
func SetOrganizationPlan(ctx context.Context, p OrganizationParams, organizationID, plan string) error {
	_, err := p.do(ctx, planOrganization, organizationTarget{ID: organizationID, Plan: plan})
	return err
}

// do runs a command here or, if a server holds the folder, there.
func (p OrganizationParams) do(ctx context.Context, c organizationCommand, target organizationTarget) ([]Organization, error) {
	f := folder(p.Config.Data)
	s, _, err := f.openAccounts(ctx, openParams{Database: p.Config.Database, Log: p.Log})
	if errors.Is(err, errLocked) {
		var all []Organization
		err := f.ask(ctx, string(c), target, &all)
		return all, err
	}
	if err != nil {
		return nil, err
	}
	_, accounts := newAccounts(s.sql, retention.Rules{})
	all, err := organizationOperator{accounts.Organizations, plansOf(p.Quota)}.run(ctx, c, target)
	return all, errors.Join(err, s.close())
}

// organizationOperator does what the operator asks for.
type organizationOperator struct {
	service *account.Organizations
	plans   quota.Plans
}

// run does a command. The operator needs no role.
func (o organizationOperator) run(ctx context.Context, c organizationCommand, target organizationTarget) ([]Organization, error) {
	switch c {
	case suspendOrganization:
		return nil, o.service.Suspend(ctx, auditlog.Actor{}, target.ID)
	case resumeOrganization:
		return nil, o.service.Resume(ctx, auditlog.Actor{}, target.ID)
	case planOrganization:
		if target.Plan != "" && !o.plans.Has(target.Plan) {
			return nil, fmt.Errorf("the settings have no plan %q; they have %q", target.Plan, o.plans.Names())
		}
		return nil, o.service.SetPlan(ctx, auditlog.Actor{}, target.ID, target.Plan)
	default:
		return allOrganizations(ctx, o.service)
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
			if o.Plan != "" {
				shown.Plan = &o.Plan
			}
			all = append(all, shown)
		}
		if len(page) < organizationPage {
			return all, nil
		}
	}
}

// commands are those that a server takes.
func (o organizationOperator) commands() map[string]controlCommand {
	commands := map[string]controlCommand{}
	for _, c := range []organizationCommand{listOrganizations, suspendOrganization, resumeOrganization, planOrganization} {
		commands[string(c)] = func(ctx context.Context, body io.Reader) (any, error) {
			var target organizationTarget
			if err := json.NewDecoder(body).Decode(&target); err != nil {
				return nil, fmt.Errorf("read the command: %w", err)
			}
			return o.run(ctx, c, target)
		}
	}
	return commands
}
