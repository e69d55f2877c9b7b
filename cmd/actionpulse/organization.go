package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// organizationCommand is what the operator does with organizations.
type organizationCommand struct {
	List    organizationList    `cmd:"" help:"List the organizations."`
	Suspend organizationSuspend `cmd:"" help:"Refuse every key and token of an organization, until it is resumed."`
	Resume  organizationResume  `cmd:"" help:"End the suspension of an organization."`
	Plan    organizationPlan    `cmd:"" help:"Give an organization a plan of the settings, or the default one."`
}

// Help is shown by organization --help.
func (*organizationCommand) Help() string {
	return `A server that holds the folder is asked to do it while it runs, and it counts
from its next request on. Otherwise it is done to the folder. Exit code 0: it is
done; 1: it could not be done, and the message says why; 5: the folder cannot be
opened.`
}

// organizationList prints all organizations.
type organizationList struct {
	Folder config.Folder `embed:""`
	JSON   bool          `name:"json" env:"-" help:"Print them as JSON."`
}

// Run prints the organizations in order of id. "-" stands for the default plan.
func (c *organizationList) Run(ctx context.Context, std streams) error {
	p, err := organizationParams(&c.Folder, std)
	if err != nil {
		return err
	}
	all, err := app.ListOrganizations(ctx, p)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(std.stdout, all)
	}
	table := tabwriter.NewWriter(std.stdout, 0, 0, 2, ' ', 0)
	for _, o := range all {
		state := "active"
		if o.SuspendedAt != nil {
			state = "suspended"
		}
		plan := "-"
		if o.Plan != nil {
			plan = *o.Plan
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", o.ID, state, plan, o.Name); err != nil {
			return err
		}
	}
	return table.Flush()
}

// organizationSuspend suspends an organization.
type organizationSuspend struct {
	Folder config.Folder `embed:""`
	ID     string        `arg:"" help:"The organization."`
}

// Run suspends it. Suspending again changes nothing.
func (c *organizationSuspend) Run(ctx context.Context, std streams) error {
	p, err := organizationParams(&c.Folder, std)
	if err != nil {
		return err
	}
	return app.SuspendOrganization(ctx, p, c.ID)
}

// organizationResume ends a suspension.
type organizationResume struct {
	Folder config.Folder `embed:""`
	ID     string        `arg:"" help:"The organization."`
}

// Run resumes it. Resuming again changes nothing.
func (c *organizationResume) Run(ctx context.Context, std streams) error {
	p, err := organizationParams(&c.Folder, std)
	if err != nil {
		return err
	}
	return app.ResumeOrganization(ctx, p, c.ID)
}

// organizationPlan gives an organization a plan.
type organizationPlan struct {
	Folder config.Folder `embed:""`
	Quota  config.Quota  `embed:""`
	ID     string        `arg:"" help:"The organization."`
	Plan   string        `arg:"" optional:"" help:"The name of a plan in the settings; without it, the default plan."`
}

// Run gives it the plan. The same again changes nothing.
func (c *organizationPlan) Run(ctx context.Context, std streams) error {
	p, err := organizationParams(&c.Folder, std)
	if err != nil {
		return err
	}
	if err := c.Folder.ValidateQuota(&c.Quota); err != nil {
		return &exitError{exitUsage, err}
	}
	p.Quota = c.Quota
	return app.SetOrganizationPlan(ctx, p, c.ID, c.Plan)
}

func organizationParams(folder *config.Folder, std streams) (app.OrganizationParams, error) {
	if err := folder.Validate(); err != nil {
		return app.OrganizationParams{}, &exitError{exitUsage, err}
	}
	log, err := telemetry.NewLogger(telemetry.LogParams{Writer: std.stderr, Level: commandLogLevel})
	return app.OrganizationParams{Config: *folder, Log: log}, err
}
