package main

import (
	"github.com/alecthomas/kong"

	"github.com/actionpulse/actionpulse/internal/config"
)

// configCommand prints the settings.
type configCommand struct {
	Config config.Config `embed:""`
}

// Help is shown by config --help.
func (*configCommand) Help() string {
	return `Prints the settings that serve would use with the same flags, environment and
file: for each its value and whether it comes from a flag, the environment, the
file or is the default. Passwords are left out.`
}

// Run prints every setting by name, or says what is wrong with them.
func (c *configCommand) Run(parsed *kong.Context, std streams) error {
	if err := c.Config.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	return printJSON(std.stdout, c.Config.Report(parsed))
}
