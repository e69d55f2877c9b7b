package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// backupCommand copies a data folder.
type backupCommand struct {
	Folder config.Folder `embed:""`
	Out    string        `name:"out" env:"-" required:"" placeholder:"DIR" help:"The folder that gets the backup: a new or an empty one, on another disk at best."`
	PGDump string        `name:"pg-dump" env:"-" placeholder:"FILE" help:"The program pg_dump, with --database. Default: the one in PATH."`
	Quiet  bool          `name:"quiet" env:"-" help:"Show no progress."`
	JSON   bool          `name:"json" env:"-" help:"Print the result as JSON."`
}

// Help is shown by backup --help.
func (*backupCommand) Help() string {
	return `Copies everything that a data folder is: events, the positions and ids that
repeats are known by, accounts, keys, credits, flows, replays, settings and
secret.key. THE BACKUP HOLDS SECRETS: keep it as safe as the folder.

A server that holds the folder goes on: it takes events in and answers, but new
events become visible to queries only when its event store has been copied. With
--database a dump is made by pg_dump at the same moment; it must be the one that
the server is given. Replays in a bucket are not copied, nor those that are in the
folder of another server of the database. The folder gets its MANIFEST.json last;
without that it is no backup.

Exit codes: 0 it is made; 1 it could not be made; 2 wrong settings; 5 the data
folder or the target cannot be used; 130 stopped by a signal.`
}

// Run makes the backup.
func (c *backupCommand) Run(ctx context.Context, std streams) error {
	if err := c.Folder.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	log, err := telemetry.NewLogger(telemetry.LogParams{Writer: std.stderr, Level: commandLogLevel})
	if err != nil {
		return err
	}
	r, err := app.Backup(ctx, app.BackupParams{
		Config: c.Folder, Out: c.Out, DumpTool: c.PGDump, Program: readVersion().Version,
		Progress: copyProgress(std.stderr, c.Quiet), Log: log,
	})
	if err != nil {
		return interrupted(ctx, err, "it can be run again")
	}
	if err := warn(std.stderr, r); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(std.stdout, r)
	}
	return c.print(std.stdout, r)
}

// interrupted gives what a signal has ended the exit code for it, and says what
// comes next.
func interrupted(ctx context.Context, err error, next string) error {
	if ctx.Err() == nil || errors.Is(err, app.ErrRefused) {
		return err
	}
	return &exitError{exitInterrupted, fmt.Errorf("stopped by a signal; %s: %w", next, err)}
}

// warn says what the backup does not hold.
func warn(w io.Writer, r app.BackupReport) (err error) {
	if r.Manifest.SecretKey != "" {
		_, err = fmt.Fprintln(w, "actionpulse: the key of secrets is in the settings and NOT in the backup: keep secret_key elsewhere, and name it to restore and serve")
	}
	if err == nil && r.Manifest.Replays == app.ReplaysElsewhere {
		_, err = fmt.Fprintln(w, "actionpulse: session replays are not in this folder and NOT in the backup: they are in a bucket, which is to be named by --replay.blobs, or in the folder of another server of the database, which is to be backed up, too")
	}
	if err == nil && r.LostReplays > 0 {
		_, err = fmt.Fprintf(w, "actionpulse: %d chunks of session replays are lost, and so not in the backup: verify names them\n", r.LostReplays)
	}
	return err
}

// print shows the result to a person, with what comes next.
func (c *backupCommand) print(w io.Writer, r app.BackupReport) error {
	_, err := fmt.Fprintf(w, "Made the backup %s: %d files, %s, position %d.\n", c.Out, len(r.Manifest.Files), megabytes(r.Bytes), r.Manifest.Acknowledged)
	if err == nil && r.Online {
		_, err = fmt.Fprintf(w, "Events became visible again after %s.\n", time.Duration(r.Held)*time.Millisecond)
	}
	database := ""
	if c.Folder.Database != "" {
		database = " --database EMPTY"
	}
	if err == nil {
		_, err = fmt.Fprintf(w, `It holds secrets: keep it as safe as the data folder.

Next, to see that it can be restored: actionpulse restore --from %s --data NEW%s
`, c.Out, database)
	}
	return err
}

// progressInterval is how often progress is shown.
const progressInterval = time.Second

// copyProgress shows what is being copied, nothing if it takes no time.
func copyProgress(w io.Writer, quiet bool) app.Progress {
	if quiet {
		return nil
	}
	shown := time.Now()
	return func(path string, done, all int64) {
		if time.Since(shown) < progressInterval {
			return
		}
		shown = time.Now()
		fmt.Fprintf(w, "%s of about %s: %s\n", megabytes(done), megabytes(all), path) //nolint:errcheck // only for the eye
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
