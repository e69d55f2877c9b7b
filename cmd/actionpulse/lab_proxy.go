package main

import "errors"

// labProxyCommand runs a fault proxy.
type labProxyCommand struct{}

// Run returns an error: the command is not there yet.
func (*labProxyCommand) Run() error { return errors.New("lab proxy is not built yet") }
