package main

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// restoreCommand makes a data folder of a backup.
type restoreCommand struct {
	From      string             `name:"from" env:"-" required:"" placeholder:"DIR" help:"The backup."`
	Data      string             `name:"data" default:"data" placeholder:"DIR" help:"The new data folder: absent, empty, or one whose restore was cut short. Default: data."`
	Database  config.DatabaseURL `name:"database" placeholder:"URL" help:"An empty database, postgres://…, for a backup that was made with one."`
	SecretKey config.SecretKey   `name:"secret_key" placeholder:"BASE64" help:"The key of secrets, as for serve, for a backup that does not hold it."`
	Replay    config.Replay      `embed:"" prefix:"replay."`
	PGRestore string             `name:"pg-restore" env:"-" placeholder:"FILE" help:"The program pg_restore, with --database. Default: the one in PATH."`
	Quiet     bool               `name:"quiet" env:"-" help:"Show no progress."`
	JSON      bool               `name:"json" env:"-" help:"Print the result as JSON."`
}

// Help is shown by restore --help.
func (*restoreCommand) Help() string {
	return `Copies a backup into a new data folder, comparing every file with the checksum
of the manifest, loads the dump if there is one, opens the folder with all checks
of a start, and verifies it. Until all of that is done no server starts on the
folder; the same command may be run again. What verify finds was so when the
backup was made: it is printed, and a server starts all the same. Replays in a
bucket are compared if --replay.blobs names it. Events and movements that were
acknowledged after the backup are not in it: whoever sends them again is served
as if for the first time.

Exit codes: 0 it is restored and its parts agree; 1 they differ, or it could not be
restored; 2 wrong settings; 5 the backup or the target cannot be
used; 130 stopped by a signal.`
}

// Run restores and verifies.
func (c *restoreCommand) Run(ctx context.Context, std streams) error {
	folder := config.Folder{Data: c.Data, Database: c.Database, SecretKey: c.SecretKey, Replay: c.Replay}
	if err := folder.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	log, err := telemetry.NewLogger(telemetry.LogParams{Writer: std.stderr, Level: commandLogLevel})
	if err != nil {
		return err
	}
	r, err := app.Restore(ctx, app.RestoreParams{
		From: c.From, Data: c.Data, Database: c.Database, SecretKey: c.SecretKey, Replay: c.Replay, LoadTool: c.PGRestore,
		Progress: copyProgress(std.stderr, c.Quiet), Log: log,
	})
	if err != nil {
		return interrupted(ctx, err, "run the same command again")
	}
	if c.JSON {
		err = printJSON(std.stdout, r)
	} else {
		err = c.print(std, r)
	}
	if err == nil && !r.Verify.OK {
		err = &exitError{exitFailure, errDiffer}
	}
	return err
}

// print shows the result to a person.
func (c *restoreCommand) print(std streams, r app.RestoreReport) error {
	_, err := fmt.Fprintf(std.stdout, "Restored %s from the backup of %s, position %d.\n",
		c.Data, r.Manifest.CreatedAt.Format("2006-01-02 15:04:05 UTC"), r.Manifest.Acknowledged)
	if err == nil && r.ReplaysUnseen {
		_, err = fmt.Fprintln(std.stdout, "Session replays are not in the backup, and were not compared: if they are in a bucket, name it by --replay.blobs.")
	}
	if err == nil && !r.Verify.OK {
		_, err = fmt.Fprintln(std.stdout, "Each file is as it was backed up, and a server starts on them, but they differ, as they do in the backup:")
	}
	if err != nil {
		return err
	}
	return printReport(std, r.Verify)
}
