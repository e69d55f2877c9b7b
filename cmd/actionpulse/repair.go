package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// commandLogLevel keeps the one-off commands quiet unless something is wrong.
const commandLogLevel = slog.LevelWarn

// errDiffer is the message of verify and repair when the stores differ.
var errDiffer = errors.New("the stores differ")

// repairCommand rebuilds what can be rebuilt.
type repairCommand struct {
	Folder     config.Folder `embed:""`
	Window     time.Duration `name:"intake.window" default:"48h" help:"Deduplication window for an intake store that must be made anew."`
	AcceptLoss bool          `name:"accept-loss" env:"-" help:"Give up events that are in neither store."`
	JSON       bool          `name:"json" env:"-" help:"Print the report as JSON."`
}

// Help is shown by repair --help.
func (*repairCommand) Help() string {
	return `With the server stopped: rebuilds the claims from the stored and waiting events,
makes a new intake store if it is missing or damaged (a damaged one is moved
aside, never deleted), and tries what was set aside again. Says what it did and
verifies the result. Exit code 0: the stores agree now; 1: they differ; 5: a
part is missing that nothing can bring back, or the folder is in use.`
}

// Run repairs and prints what was done.
func (c *repairCommand) Run(ctx context.Context, std streams) error {
	if err := c.Folder.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	log, err := telemetry.NewLogger(telemetry.LogParams{Writer: std.stderr, Level: commandLogLevel})
	if err != nil {
		return err
	}
	report, err := app.Repair(ctx, app.RepairParams{Config: c.Folder, AcceptLoss: c.AcceptLoss, Window: c.Window, Log: log})
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(std.stdout, report)
	} else {
		err = printRepair(std, report)
	}
	if err == nil && !report.Verify.OK {
		err = &exitError{exitFailure, errDiffer}
	}
	return err
}

// printRepair shows what was done to a person.
func printRepair(std streams, r app.RepairReport) error {
	for _, step := range r.Done {
		if _, err := fmt.Fprintf(std.stdout, "- %s\n", step); err != nil {
			return err
		}
	}
	return printReport(std, r.Verify)
}
