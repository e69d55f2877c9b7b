package main

import (
	"context"
	"encoding/json"
	"errors"
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
	Join         bool   `name:"join" env:"-" help:"Make the folder of a further server on the --database of others. Needs their secret_key; nothing else is asked or printed."`
	JSON         bool   `name:"json" env:"-" help:"Print the result as JSON."`
}

// Help is shown by init --help.
func (*initCommand) Help() string {
	return `Makes the folder with one organization, its owner, one project and one
credential of each kind. They are printed once and cannot be read again. A
folder that is initialised already is refused with exit code 5.

With --join nobody is made: the folder is that of a further server on the
PostgreSQL database that other servers use. It has events of its own. --secret_key
is what the file secret.key of the first server holds; the folder keeps it.`
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
	p := app.InitParams{
		Data:     c.Folder.Data,
		Database: c.Folder.Database, SecretKey: c.Folder.SecretKey,
		Setup: account.SetupParams{Organization: c.Organization, Project: c.Project, Email: c.Email},
		Log:   log,
	}
	if c.Join {
		return c.join(ctx, std, p)
	}
	made, err := app.Init(ctx, p)
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

// join makes the folder of a further server.
func (c *initCommand) join(ctx context.Context, std streams, p app.InitParams) error {
	if p.Database == "" || p.SecretKey == "" {
		return &exitError{exitUsage, errors.New("--join needs --database and --secret_key, those of the servers that are there")}
	}
	if err := app.Join(ctx, p); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(std.stdout, struct {
			Data string `json:"data"`
		}{c.Folder.Data})
	}
	_, err := fmt.Fprintf(std.stdout, "Made the data folder %s for the database that is there.\n\nNext: actionpulse serve --data %s --database …\n",
		c.Folder.Data, c.Folder.Data)
	return err
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
