package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
	labreport "github.com/actionpulse/actionpulse/internal/lab/report"
)

// labClientCommand judges a client.
type labClientCommand struct {
	Command []string `arg:"" optional:"" name:"command" help:"The client under test, after --. It is run once in each scenario, and again where the scenario says so."`

	Profile     string        `name:"profile" env:"-" enum:"events,keyed,mutation,deploy,session,replay" default:"events" help:"What the client does: events, keyed, mutation, deploy, session or replay. Default: events."`
	API         string        `name:"api" env:"-" enum:"actionpulse,segment,posthog,generic" default:"actionpulse" help:"What it speaks: actionpulse, segment, posthog or generic. Default: actionpulse."`
	Scenario    []string      `name:"scenario" env:"-" default:"all" placeholder:"NAME" help:"The scenarios to play: all, or names with commas between; list prints them, and the rules. Default: all."`
	Scale       float64       `name:"scale" env:"-" default:"1" placeholder:"SECONDS" help:"The client's first delay: 0.05 if it was set to 50 ms, so that a run takes seconds. Default: 1."`
	MaxAttempts int           `name:"max-attempts" env:"-" default:"20" placeholder:"N" help:"How many attempts still count as bounded. Default: 20."`
	Timeout     time.Duration `name:"timeout" env:"-" placeholder:"DURATION" help:"How long one run of the client may take. Default: 15s and 240 first delays."`
	Parallel    int           `name:"parallel" env:"-" default:"4" placeholder:"N" help:"How many scenarios are played at once, each with a server and an outbox of its own. Default: 4."`
	Seed        uint64        `name:"seed" env:"-" placeholder:"N" help:"Orders the scenarios; printed, so that a run can be repeated. Default: random."`
	CI          string        `name:"ci" env:"-" enum:"github,gitlab,none" default:"github" help:"Whose environment a deploy step finds: github, gitlab or none. Default: github."`
	Clock       bool          `name:"clock" env:"-" help:"The client takes LAB_NOW for the present time."`
	Attach      bool          `name:"attach" env:"-" help:"Start nothing: print the address and judge what comes from a client that runs already. Nothing is judged that needs a restart."`
	Listen      string        `name:"listen" env:"-" default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Where to listen with --attach. Default: a free port of 127.0.0.1."`

	Report  string `name:"report" env:"-" enum:"text,json,junit" default:"text" help:"Form of the report: text, json or junit. Default: text."`
	Out     string `name:"out" env:"-" placeholder:"FILE" help:"Write the report to a file instead of standard output."`
	Verbose bool   `name:"verbose" short:"v" env:"-" help:"Show the scenarios as they begin, and what the client prints."`
	Explain bool   `name:"explain" env:"-" help:"Print what the command has to do, the scenarios and the rules, and stop."`

	labAPI `embed:""`
}

// labAPI completes or changes an adapter.
type labAPI struct {
	Path        []string `name:"path" env:"-" placeholder:"PATH" help:"Ends of the paths that items are sent to. Default: the API's; generic: any."`
	Items       *string  `name:"items-pointer" env:"-" placeholder:"POINTER" help:"JSON pointer of the list of items in a body, such as /batch."`
	ID          string   `name:"id" env:"-" placeholder:"MEMBER" help:"Member of an item that holds its id."`
	TS          string   `name:"ts" env:"-" placeholder:"MEMBER" help:"Member of an item that holds its time."`
	Fact        []string `name:"fact" env:"-" placeholder:"MEMBER" help:"Members by which an item is recognised when it comes again. Default: the API's; generic: all but id, time and --ignore."`
	Ignore      []string `name:"ignore" env:"-" placeholder:"MEMBER" help:"Members of an item that may differ between attempts."`
	Unit        string   `name:"unit" env:"-" placeholder:"POINTER" help:"JSON pointer of what names a unit of keyed work. Default: the whole body."`
	KeyHeader   string   `name:"key-header" env:"-" placeholder:"NAME" help:"Header with the key of keyed work. Default: Idempotency-Key."`
	SuccessBody *string  `name:"success-body" env:"-" placeholder:"JSON" help:"What a success is answered with."`
	Success     int      `name:"success-status" env:"-" placeholder:"STATUS" help:"The status of a success."`
}

// Help is shown by lab client --help.
func (*labClientCommand) Help() string {
	var b strings.Builder
	b.WriteString(`Starts a server on 127.0.0.1 that misbehaves on a script, runs your command once
for each scenario, and says which rules of the retry contract it keeps. The
command learns from its environment where to send and with what:

  ACTIONPULSE_URL, ACTIONPULSE_KEY (a server key), ACTIONPULSE_BROWSER_TOKEN,
  ACTIONPULSE_PROJECT_KEY, ACTIONPULSE_CI_TOKEN, ACTIONPULSE_PROJECT_ID,
  ACTIONPULSE_ACCESS_TOKEN, ACTIONPULSE_REFRESH_TOKEN
  LAB_PROFILE, LAB_SCENARIO, LAB_RUN (1, and 2 or 3 after a restart), LAB_EVENTS,
  LAB_BATCH, LAB_SCALE, LAB_OUTBOX (a folder that survives restarts)

What it has to do:
`)
	for _, p := range judgeclient.Profiles {
		fmt.Fprintf(&b, "\n%s: %s\n", p, judgeclient.Explain(p))
	}
	b.WriteString(`
Exit codes: 0 no rule broken, 1 failure, 2 wrong usage, 8 at least one rule broken,
130 interrupted. Rules that were not tested, or whose evidence is inconclusive, are
reported as such and do not change the exit code.`)
	return b.String()
}

// Run judges the client and writes the report.
func (c *labClientCommand) Run(ctx context.Context, std streams) error {
	p, err := c.params(std.stderr)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if c.Explain || slices.Contains(c.Scenario, "list") {
		_, err := io.WriteString(std.stdout, judgeclient.List(p))
		return err
	}
	if c.Attach == (len(c.Command) > 0) {
		return &exitError{exitUsage, errors.New("give the command of the client after --, or --attach")}
	}
	if !c.Attach {
		if _, err := exec.LookPath(c.Command[0]); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	if p.Folder, err = os.MkdirTemp("", "actionpulse-lab-"); err != nil {
		return err
	}
	result, err := judgeclient.Run(ctx, *p)
	if e := os.RemoveAll(p.Folder); e != nil {
		err = errors.Join(err, e)
	}
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, err}
	}
	if err != nil {
		return err
	}
	return writeReport(result, labreport.Format(c.Report), c.Out, std)
}

// writeReport writes a report to a file, or to standard output if none is
// named, and says by its error whether a rule was broken.
func writeReport(r *labreport.Report, format labreport.Format, name string, std streams) error {
	var err error
	if name == "" {
		err = r.Write(std.stdout, format)
	} else {
		var b strings.Builder
		if err = r.Write(&b, format); err == nil {
			err = os.WriteFile(name, []byte(b.String()), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if r.Failed() {
		return &exitError{code: exitBroken}
	}
	return nil
}

// params reads the flags.
func (c *labClientCommand) params(stderr io.Writer) (*judgeclient.Params, error) {
	if c.Scale <= 0 || c.Scale > 60 {
		return nil, errors.New("--scale is more than 0 and at most 60 seconds")
	}
	if c.MaxAttempts < 1 || c.Parallel < 1 || c.Timeout < 0 {
		return nil, errors.New("--max-attempts and --parallel are at least 1, --timeout is not negative")
	}
	seed := c.Seed
	if seed == 0 {
		seed = randomSeed()
	}
	p := &judgeclient.Params{
		Profile: judgeclient.Profile(c.Profile), API: c.labAPI.on(judgeclient.APIs[c.API]), Scale: c.Scale, MaxAttempts: c.MaxAttempts,
		Timeout: c.Timeout, Parallel: c.Parallel, Seed: seed, Attached: c.Attach, Clock: c.Clock, CI: c.CI, Name: strings.Join(c.Command, " "),
	}
	if !slices.Contains(c.Scenario, "all") {
		p.Scenarios = c.Scenario
	}
	var copyTo io.Writer
	if c.Verbose {
		copyTo = stderr
		p.OnScenario = func(s *judgeclient.Scenario, address string) {
			fmt.Fprintf(stderr, "%s at %s: %s\n", s.Name, address, s.About) //nolint:errcheck // progress only
		}
	}
	p.Subject = judgeclient.Command(c.Command, copyTo)
	if c.Attach {
		c.attach(p, stderr)
	}
	return p, nil
}

// attach judges a client that runs already, always at one address.
func (c *labClientCommand) attach(p *judgeclient.Params, stderr io.Writer) {
	p.Name, p.Subject = "attached client", judgeclient.Attached
	address := c.Listen
	p.Listen = func() (net.Listener, error) {
		var config net.ListenConfig
		listener, err := config.Listen(context.Background(), "tcp", address)
		if err == nil {
			address = listener.Addr().String()
		}
		return listener, err
	}
	p.OnScenario = func(s *judgeclient.Scenario, address string) {
		fmt.Fprintf(stderr, "%s at %s: %s\n", s.Name, address, s.About) //nolint:errcheck // the report says it too
	}
}

// on returns an adapter with what the flags say about it.
func (f *labAPI) on(a judgeclient.API) judgeclient.API {
	if len(f.Path) > 0 {
		a.Paths = f.Path
	}
	if f.Items != nil {
		a.ItemsPointer = *f.Items
	}
	if f.SuccessBody != nil {
		a.SuccessBody = *f.SuccessBody
	}
	for _, text := range []struct {
		flag string
		to   *string
	}{{f.ID, &a.ID}, {f.TS, &a.TS}, {f.Unit, &a.UnitPointer}, {f.KeyHeader, &a.KeyHeader}} {
		if text.flag != "" {
			*text.to = text.flag
		}
	}
	if len(f.Fact) > 0 {
		a.Fact = f.Fact
	}
	a.Ignore = f.Ignore
	if f.Success > 0 {
		a.SuccessStatus = f.Success
	}
	return a
}
