// Command actionpulse is the whole of ActionPulse in one binary: it makes a
// data folder, serves it, sends files to it and checks it. This package reads
// the command line, calls what does the work and turns errors into exit codes;
// it does no work of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
)

// commandLine is every command; each is a file of this package.
type commandLine struct {
	Init         initCommand         `cmd:"" help:"Make a data folder with its first accounts and keys."`
	Serve        serveCommand        `cmd:"" help:"Serve a data folder over HTTP."`
	Send         sendCommand         `cmd:"" help:"Send events from files."`
	Flow         flowCommand         `cmd:"" help:"Check, publish and run flows."`
	DeployMarker deployMarkerCommand `cmd:"" name:"deploy-marker" help:"Mark a deploy from a CI/CD pipeline, once however often the step runs."`
	Verify       verifyCommand       `cmd:"" help:"Check that the parts of a data folder agree."`
	Repair       repairCommand       `cmd:"" help:"Rebuild what can be rebuilt of a data folder."`
	Backup       backupCommand       `cmd:"" help:"Copy a data folder, also while it is being served."`
	Restore      restoreCommand      `cmd:"" help:"Make a data folder of a backup."`
	Organization organizationCommand `cmd:"" help:"List organizations, suspend and resume them, set their plans."`
	Config       configCommand       `cmd:"" help:"Print the settings in force and where each comes from."`
	Lab          labCommand          `cmd:"" help:"Try how clients and servers bear repeats and faults."`
	Version      versionCommand      `cmd:"" help:"Print the version."`
}

// streams are where a command reads and writes.
type streams struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks; a second one ends the process the hard way.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run does what the arguments say until ctx is done and returns the exit code.
func run(ctx context.Context, args []string, std streams) (code int) {
	defer func() {
		if p := recover(); p != nil {
			ended, ok := p.(parserEnded)
			if !ok {
				panic(p)
			}
			code = int(ended)
		}
	}()
	var cli commandLine
	parser, err := kong.New(&cli,
		kong.Name("actionpulse"),
		kong.Description("Product events, deploy markers, credits and paid flow runs: no retry ever does the work twice."),
		kong.DefaultEnvars(config.EnvPrefix),
		kong.Writers(std.stdout, std.stderr),
		kong.Exit(func(code int) { panic(parserEnded(code)) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
	)
	if err != nil {
		return report(std, fmt.Errorf("the command line is malformed: %w", err))
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return report(std, &exitError{exitUsage, err})
	}
	return report(std, parsed.Run(parsed))
}

// parserEnded carries the exit code of a parser that has done all there is to
// do, such as printing help.
type parserEnded int

// report says what went wrong and returns the exit code.
func report(std streams, err error) int {
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(std.stderr, "actionpulse: %s\n", text) //nolint:errcheck // the exit code says it too
	}
	if errors.Is(err, app.ErrRefused) {
		return exitRefused
	}
	return exitCode(err)
}
