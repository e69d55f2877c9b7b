package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/cienv"
	"github.com/actionpulse/actionpulse/retry"
)

// deployMarkerCommand marks a deploy, once for each deploy.
type deployMarkerCommand struct {
	Version     string            `name:"version" env:"-" required:"" placeholder:"TEXT" help:"What was deployed, such as 1.4.2."`
	Environment string            `name:"environment" env:"-" placeholder:"NAME" help:"Where it was deployed. Default: what the CI/CD system says, else production."`
	Name        string            `name:"name" env:"-" placeholder:"TEXT" help:"Tells this deploy from others of the same run to the same environment, such as a service. Default: the job."`
	Commit      string            `name:"commit" env:"-" placeholder:"HASH" help:"What was deployed, as a commit; none for none. Default: what the CI/CD system says."`
	RunURL      string            `name:"run-url" env:"-" placeholder:"URL" help:"Where to read about the deploy; none for none. Default: the run of the CI/CD system."`
	Title       string            `name:"title" env:"-" placeholder:"TEXT" help:"Title of the marker."`
	Metadata    map[string]string `name:"metadata" env:"-" mapsep:"none" placeholder:"NAME=TEXT" help:"What else to keep with the marker; may be given several times. Nothing that another attempt changes."`
	TS          string            `name:"ts" env:"-" placeholder:"TIME" help:"When it was deployed, the same on every attempt, like 2026-05-01T10:00:00Z; none for the time at which the server makes the marker. Default: the run's time where the CI/CD system offers a stable one, else none."`
	Key         string            `name:"key" aliases:"idempotency-key" env:"-" placeholder:"TEXT" help:"Names the deploy: the same on every attempt, another for the next deploy. Default: made from the run, the job and the environment."`

	URL         string `name:"url" aliases:"server" env:"ACTIONPULSE_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Address of the server. Default: http://127.0.0.1:8080."`
	Project     string `name:"project" env:"ACTIONPULSE_PROJECT_ID" placeholder:"ID" help:"The project of the token."`
	TokenFile   string `name:"token-file" env:"ACTIONPULSE_CI_TOKEN_FILE" placeholder:"FILE" help:"File that holds the CI/CD token. Default: the token is in ACTIONPULSE_CI_TOKEN."`
	MaxAttempts int    `name:"max-attempts" env:"-" default:"10" placeholder:"N" help:"How often the request is made, within 15 minutes, before the command gives up. Default: 10."`
	JSON        bool   `name:"json" env:"-" help:"Print the marker as JSON."`
	DryRun      bool   `name:"dry-run" env:"-" help:"Send nothing: print what would be sent, and which variables it comes from."`
}

// Help is shown by deploy-marker --help.
func (*deployMarkerCommand) Help() string {
	return `Marks that a version was deployed. However often the step is run again, there is
one marker: the command takes a key from the environment of the CI/CD system that
is the same on every attempt of one deploy, and finding the marker already there
is a success.

Known are ` + strings.Join(cienv.Systems(), ", ") + `. Anywhere else
give --key. The token is read from ACTIONPULSE_CI_TOKEN or a file, and is no flag:
command lines are written into the logs of pipelines.

Exit codes: 0 marked, or marked already, 1 refused (a conflict is explained), 2 wrong
usage, 4 gave up after repeated failures, 130 interrupted.`
}

// deployIO is the world around deploy-marker.
type deployIO struct {
	streams
	lookup cienv.Lookup
	now    func() time.Time
	// policy says how the request is repeated.
	policy retry.Policy
}

// Run marks the deploy.
func (c *deployMarkerCommand) Run(ctx context.Context, std streams) error {
	return c.run(ctx, deployIO{std, os.LookupEnv, time.Now, repeats(std)})
}

func (c *deployMarkerCommand) run(ctx context.Context, world deployIO) error {
	d, err := c.draft(world.lookup)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if c.DryRun {
		return c.printDraft(world.stdout, d)
	}
	if c.Project == "" {
		return &exitError{exitUsage, errors.New("no project: set ACTIONPULSE_PROJECT_ID or --project")}
	}
	if c.MaxAttempts < 1 {
		return &exitError{exitUsage, errors.New("--max-attempts is at least 1")}
	}
	token, err := c.token(world.lookup)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	made, err := c.mark(ctx, d, token, world.policy)
	if err != nil {
		return err
	}
	warnings := d.warnings(made, world.now())
	for _, warning := range warnings {
		fmt.Fprintf(world.stderr, "warning: %s\n", warning) //nolint:errcheck // it is printed with the marker, too
	}
	return c.printMarked(world.stdout, d, made, warnings)
}

// token reads the CI/CD token from its file, else from the environment.
func (c *deployMarkerCommand) token(lookup cienv.Lookup) (string, error) {
	token, _ := lookup("ACTIONPULSE_CI_TOKEN")
	if c.TokenFile != "" {
		content, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		token = strings.TrimSpace(string(content))
	}
	if token == "" {
		return "", errors.New("no CI/CD token: set ACTIONPULSE_CI_TOKEN or --token-file")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the CI/CD token holds white space or characters that none has: was it copied whole?")
	}
	return token, nil
}
