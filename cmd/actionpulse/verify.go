package main

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// verifyCommand compares the parts of a data folder.
type verifyCommand struct {
	Folder config.Folder `embed:""`
	JSON   bool          `name:"json" env:"-" help:"Print the report as JSON."`
}

// Help is shown by verify --help.
func (*verifyCommand) Help() string {
	return `Checks that the intake store and the event store agree, that the claims are
those which the stored and waiting events call for, and that no event is stored
twice within the window; and that every balance of credits is the sum of its
entries, what is held the sum of the open holds, and no key names more than one
movement; and that each chunk of a session recording has its blob, undamaged. A server that holds the folder is asked to do it while it runs. Exit
code 0: they agree; 1: they differ, and the first differences are printed; 5: the
folder cannot be opened.`
}

// Run prints the report.
func (c *verifyCommand) Run(ctx context.Context, std streams) error {
	if err := c.Folder.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	log, err := telemetry.NewLogger(telemetry.LogParams{Writer: std.stderr, Level: commandLogLevel})
	if err != nil {
		return err
	}
	report, err := app.Verify(ctx, app.VerifyParams{Config: c.Folder, Log: log})
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(std.stdout, report)
	} else {
		err = printReport(std, report)
	}
	if err == nil && !report.OK {
		err = &exitError{exitFailure, errDiffer}
	}
	return err
}

// printReport shows a report to a person.
func printReport(std streams, r audit.Report) error {
	verdict := "The stores agree."
	if !r.OK {
		verdict = "The stores differ."
	}
	_, err := fmt.Fprintf(std.stdout, `%s

  positions assigned  %d
  stored through      %d
  waiting             %d
  stored events       %d
  set aside           %d
  claims              %d (expected %d)
  credit movements    %d
  credit balances     %d
  open holds          %d
  replay chunks       %d
`, verdict, r.LastPosition, r.StoredPosition, r.Backlog, r.Rows, r.Quarantined, r.Claims, r.ExpectedClaims,
		r.Movements, r.Balances, r.OpenHolds, r.ReplayChunks)
	for _, d := range r.Differences {
		if err == nil {
			_, err = fmt.Fprintf(std.stdout, "\n  - %s", d)
		}
	}
	if err == nil && len(r.Differences) > 0 {
		_, err = fmt.Fprintln(std.stdout)
	}
	return err
}
