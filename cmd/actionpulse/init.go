package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// initCommand makes a data folder.
type initCommand struct {
	Folder config.Folder `embed:""`

	Organization string `name:"organization" env:"-" default:"My organization" help:"Name of the first organization."`
	Project      string `name:"project" env:"-" default:"My project" help:"Name of its first project."`
	Email        string `name:"email" env:"-" default:"owner@localhost" help:"Email address of its owner."`
	JSON         bool   `name:"json" env:"-" help:"Print the result as JSON."`
}

// Help is shown by init --help.
func (*initCommand) Help() string {
	return `Makes the folder with one organization, its owner, one project and one
credential of each kind. They are printed once and cannot be read again. A
folder that is initialised already is refused with exit code 5.`
}

// initResult is what init --json prints.
type initResult struct {
	OrganizationID string    `json:"organization_id"`
	ProjectID      string    `json:"project_id"`
	Owner          initOwner `json:"owner"`
	AccessToken    string    `json:"access_token"`
	BrowserToken   string    `json:"browser_token"`
	ServerKey      string    `json:"server_key"`
	LegacyKey      string    `json:"legacy_key"`
	ProjectKey     string    `json:"project_key"`
	CIToken        string    `json:"ci_token"`
}

type initOwner struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// Run makes the folder and prints its secrets.
func (c *initCommand) Run(ctx context.Context, std streams) error {
	if err := c.Folder.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	log, err := telemetry.NewLogger(telemetry.LogParams{Writer: std.stderr, Level: commandLogLevel})
	if err != nil {
		return err
	}
	made, err := app.Init(ctx, app.InitParams{
		Data:     c.Folder.Data,
		Database: c.Folder.Database, SecretKey: c.Folder.SecretKey,
		Setup: account.SetupParams{Organization: c.Organization, Project: c.Project, Email: c.Email},
		Log:   log,
	})
	if err != nil {
		return err
	}
	result := initResult{
		OrganizationID: made.OrganizationID, ProjectID: made.Project.ID,
		Owner:       initOwner{Email: made.Email, Password: made.Password},
		AccessToken: made.AccessToken, BrowserToken: made.BrowserToken, ServerKey: made.ServerKey,
		LegacyKey: made.LegacyKey, ProjectKey: made.ProjectKey, CIToken: made.CIToken,
	}
	if c.JSON {
		return printJSON(std.stdout, result)
	}
	return c.print(std.stdout, result)
}

// print shows the result to a person.
func (c *initCommand) print(w io.Writer, r initResult) error {
	_, err := fmt.Fprintf(w, `Made the data folder %s. Keep what follows: it is shown only once.

  organization id  %s
  project id       %s
  owner            %s
  password         %s
  access token     %s  (24 hours)
  browser token    %s
  server key       %s
  legacy key       %s
  project key      %s
  CI token         %s

Next: actionpulse serve --data %s
`, c.Folder.Data, r.OrganizationID, r.ProjectID, r.Owner.Email, r.Owner.Password, r.AccessToken,
		r.BrowserToken, r.ServerKey, r.LegacyKey, r.ProjectKey, r.CIToken, c.Folder.Data)
	return err
}

// printJSON prints v, indented.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
