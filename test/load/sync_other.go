//go:build !linux

package main

import "os"

// fdatasync makes what was written to a file durable.
func fdatasync(file *os.File) error { return file.Sync() }
