//go:build unix

package main

import "syscall"

// What the process creates is readable by its user only, whichever library
// creates it: files 0600, folders 0700.
//
//nolint:gochecknoinits // before anything else, in tests too
func init() { syscall.Umask(0o077) }
