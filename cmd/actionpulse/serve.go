package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// serveCommand serves a data folder.
type serveCommand struct {
	Config config.Config `embed:""`
}

// Help is shown by serve --help.
func (*serveCommand) Help() string {
	return `Serves until SIGTERM or ctrl-C, then answers the requests under way and stores
what was acknowledged. The address goes to standard output once requests are
taken, the log to standard error.

Exit codes: 0 stopped as asked, 1 failure, 2 wrong settings, 5 the data folder
cannot be used as it is, 6 a write to it failed.`
}

// Run serves until ctx is done.
func (c *serveCommand) Run(ctx context.Context, std streams) error {
	if err := c.Config.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	log, err := telemetry.NewLogger(telemetry.LogParams{
		Writer: std.stderr, Format: c.Config.Log.Format, Level: c.Config.Log.SlogLevel(),
	})
	if err != nil {
		return err
	}
	v := readVersion()
	log.Info("starting", "version", v.Version, "commit", v.Commit, "data", c.Config.Data, "database", c.Config.Database)
	return app.Serve(ctx, app.ServeParams{
		Config: c.Config,
		Log:    log,
		Fatal:  func(err error) { endAtOnce(log, err) },
		Listening: func(address net.Addr) {
			log.Info("listening", "address", address.String())
			if _, err := fmt.Fprintf(std.stdout, "listening on http://%s\n", address); err != nil {
				log.Warn("the address was not printed", "err", err)
			}
		},
	})
}

// endAtOnce ends the process without another word to any client: nobody knows
// what is on disk, so nothing that could be said is sure to be true.
func endAtOnce(log *slog.Logger, err error) {
	log.Error("a write to the data folder failed; the process ends", "err", err)
	os.Exit(exitStorage)
}
