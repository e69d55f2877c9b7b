package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeserver"
	labreport "github.com/actionpulse/actionpulse/internal/lab/report"
)

// labServerCommand judges a server.
type labServerCommand struct {
	API string `name:"api" env:"-" enum:"actionpulse,generic" default:"generic" help:"What the server speaks: actionpulse, or generic: any operation that takes an Idempotency-Key. Default: generic."`
	URL string `name:"url" env:"ACTIONPULSE_URL" required:"" placeholder:"URL" help:"Address of the operation, with generic; {{unit}} in it, in bodies and in --count-url is the name of a unit of work. Address of the server, with actionpulse."`

	labOperation   `embed:""`
	labCredentials `embed:""`

	Restart string        `name:"restart" env:"-" placeholder:"COMMAND" help:"Command of the shell that ends the server as hard as it can and starts it again."`
	Serve   string        `name:"serve" env:"-" placeholder:"COMMAND" help:"Command of the shell that serves. The lab runs it, kills it without a warning, and runs it again."`
	Ready   string        `name:"ready" env:"-" placeholder:"URL" help:"Address that answers once the server is up. Default: --url; with actionpulse /readyz."`
	AtOnce  int           `name:"at-once" env:"-" default:"50" placeholder:"N" help:"How many requests race for a key, 2 to 1000. Default: 50."`
	Timeout time.Duration `name:"timeout" env:"-" default:"30s" placeholder:"DURATION" help:"How long one request may take. Default: 30s."`
	Seed    uint64        `name:"seed" env:"-" placeholder:"N" help:"Seed of the faults of the network; printed. Default: random."`

	Report  string `name:"report" env:"-" enum:"text,json,junit" default:"text" help:"Form of the report: text, json or junit. Default: text."`
	Out     string `name:"out" env:"-" placeholder:"FILE" help:"Write the report to a file instead of standard output."`
	Verbose bool   `name:"verbose" short:"v" env:"-" help:"Show the trials as they begin, and what the server prints."`
}

// labOperation says what an operation is like that takes a key.
type labOperation struct {
	Method      string   `name:"method" env:"-" default:"POST" placeholder:"METHOD" help:"generic: its method. Default: POST."`
	Header      []string `name:"header" short:"H" env:"-" sep:"none" placeholder:"NAME: VALUE" help:"generic: a header of each request, such as a credential."`
	Body        string   `name:"body" env:"-" placeholder:"TEXT" help:"generic: the body."`
	OtherBody   string   `name:"other-body" env:"-" placeholder:"TEXT" help:"generic: another body that would be accepted."`
	RefusedBody string   `name:"refused-body" env:"-" placeholder:"TEXT" help:"generic: a body that is refused before anything is done."`
	ID          string   `name:"id" env:"-" placeholder:"POINTER" help:"generic: JSON pointer of the object's id in an answer, such as /id."`
	CountURL    string   `name:"count-url" env:"-" placeholder:"URL" help:"generic: answers a GET with the objects of a unit of work."`
	CountAt     string   `name:"count-at" env:"-" placeholder:"POINTER" help:"generic: JSON pointer of the list, or of the number, in that answer. Default: the whole."`
	KeyHeader   string   `name:"key-header" env:"-" default:"Idempotency-Key" placeholder:"NAME" help:"generic: header with the key. Default: Idempotency-Key."`
	KeyOptional bool     `name:"key-optional" env:"-" help:"generic: requests without a key are allowed."`
	LongKey     int      `name:"long-key" env:"-" default:"1000" placeholder:"N" help:"generic: a length of a key that is too long; 0 if there is none. Default: 1000."`
}

// labCredentials are those of one project of a server of ours.
type labCredentials struct {
	Key         string `name:"key" env:"ACTIONPULSE_KEY" placeholder:"KEY" help:"actionpulse: a server key. All credentials are better in the environment, where other users do not see them."`
	ProjectKey  string `name:"project-key" env:"ACTIONPULSE_PROJECT_KEY" placeholder:"KEY" help:"actionpulse: a project key."`
	CIToken     string `name:"ci-token" env:"ACTIONPULSE_CI_TOKEN" placeholder:"TOKEN" help:"actionpulse: a CI/CD token."`
	Project     string `name:"project" env:"ACTIONPULSE_PROJECT_ID" placeholder:"ID" help:"actionpulse: the project of all of them."`
	AccessToken string `name:"access-token" env:"ACTIONPULSE_ACCESS_TOKEN" placeholder:"TOKEN" help:"actionpulse: an access token of a member."`
}

// Help is shown by lab server --help.
func (*labServerCommand) Help() string {
	return `Drives a server through repeats, races, lost and doubled requests, odd keys and
restarts, and says whether it does the work of a key once. It makes objects that
stay: use a project or a server that is there for trials.

  actionpulse lab server --url http://127.0.0.1:3000/orders -H 'Content-Type: application/json' \
    --body '{"order": "{{unit}}", "amount": 5}' --other-body '{"order": "{{unit}}", "amount": 6}' \
    --id /id --count-url 'http://127.0.0.1:3000/orders?order={{unit}}' --count-at /orders

With --id, objects are told apart by what answers say; only with --count-url can
be seen that a refused request has made none. Without --serve or --restart,
nothing is said about restarts.

Exit codes: 0 no rule broken, 1 failure, 2 wrong usage, 8 at least one rule broken,
130 interrupted. Rules that were not tested, or whose evidence is inconclusive, are
reported as such and do not change the exit code.`
}

// Run judges the server and writes the report.
func (c *labServerCommand) Run(ctx context.Context, std streams) error {
	if err := c.validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	result, err := c.judge(ctx, std)
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, err}
	}
	if err != nil {
		return err
	}
	return writeReport(result, labreport.Format(c.Report), c.Out, std)
}

func (c *labServerCommand) validate() error {
	c.URL = strings.TrimSuffix(c.URL, "/")
	address, err := url.Parse(strings.ReplaceAll(c.URL, "{{unit}}", "unit"))
	switch {
	case err != nil:
		return fmt.Errorf("--url: %w", err)
	case (address.Scheme != "http" && address.Scheme != "https") || address.Host == "":
		return errors.New("--url begins with http:// or https://")
	case c.Serve != "" && c.Restart != "":
		return errors.New("give --serve or --restart, not both")
	case c.AtOnce < 2 || c.AtOnce > 1000:
		return errors.New("--at-once is 2 to 1000")
	case c.Timeout <= 0:
		return errors.New("--timeout is more than 0")
	}
	return c.validateAPI()
}

func (c *labServerCommand) validateAPI() error {
	if c.API != "actionpulse" {
		return nil
	}
	for _, credential := range []struct{ value, flag, env string }{
		{c.Key, "--key", "ACTIONPULSE_KEY"},
		{c.ProjectKey, "--project-key", "ACTIONPULSE_PROJECT_KEY"},
		{c.CIToken, "--ci-token", "ACTIONPULSE_CI_TOKEN"},
		{c.Project, "--project", "ACTIONPULSE_PROJECT_ID"},
		{c.AccessToken, "--access-token", "ACTIONPULSE_ACCESS_TOKEN"},
	} {
		if credential.value == "" {
			return fmt.Errorf("%s is missing; it may be in the environment as %s", credential.flag, credential.env)
		}
	}
	return nil
}

func (c *labServerCommand) judge(ctx context.Context, std streams) (result *labreport.Report, err error) {
	var process *judgeserver.Process
	seed := c.Seed
	if seed == 0 {
		seed = randomSeed()
	}
	log := io.Discard
	if c.Verbose {
		log = std.stderr
	}
	o := judgeserver.Options{
		Subject: c.URL, AtOnce: c.AtOnce, Timeout: c.Timeout, Seed: seed, Name: fmt.Sprintf("%x", randomSeed()), Progress: log,
	}
	switch {
	case c.Restart != "":
		o.Restart = judgeserver.RestartBy(c.Restart, c.ready(), log)
	case c.Serve != "":
		process, err = judgeserver.Start(ctx, c.Serve, c.ready(), log)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, process.Kill()) }()
		o.Restart = process.Restart
	}
	if err := c.adapt(ctx, &o); err != nil {
		return nil, err
	}
	return judgeserver.Judge(ctx, o)
}

func (c *labServerCommand) ready() string {
	switch {
	case c.Ready != "":
		return c.Ready
	case c.API == "actionpulse":
		return c.URL + "/readyz"
	default:
		return strings.ReplaceAll(c.URL, "{{unit}}", "unit")
	}
}

// adapt says what is to be tried.
func (c *labServerCommand) adapt(ctx context.Context, o *judgeserver.Options) error {
	if c.API == "actionpulse" {
		server := judgeserver.ActionPulse{
			URL: c.URL, IngestKey: c.Key, ProjectKey: c.ProjectKey, CIToken: c.CIToken, ProjectID: c.Project, AccessToken: c.AccessToken, Run: o.Name,
		}
		var err error
		o.Endpoints, err = server.Endpoints(ctx)
		o.Intake = server.Intake()
		return err
	}
	header := http.Header{}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return &exitError{exitUsage, errors.New("--header is 'Name: value'")}
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	endpoint, err := judgeserver.Generic{
		Method: c.Method, URL: judgeserver.Template(c.URL), Header: header, KeyHeader: c.KeyHeader, KeyOptional: c.KeyOptional, LongKey: c.LongKey,
		Body: judgeserver.Template(c.Body), Other: judgeserver.Template(c.OtherBody), Refused: judgeserver.Template(c.RefusedBody),
		ID: c.ID, CountURL: judgeserver.Template(c.CountURL), CountAt: c.CountAt,
	}.Endpoint()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	o.Endpoints = []judgeserver.Endpoint{endpoint}
	return nil
}
