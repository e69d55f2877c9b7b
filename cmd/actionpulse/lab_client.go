package main

import "errors"

// labClientCommand judges a client.
type labClientCommand struct{}

// Run returns an error: the command is not there yet.
func (*labClientCommand) Run() error { return errors.New("lab client is not built yet") }
