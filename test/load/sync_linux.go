package main

import (
	"fmt"
	"os"
	"syscall"
)

// fdatasync makes what was written to a file durable, as the engines do.
func fdatasync(file *os.File) error {
	if err := syscall.Fdatasync(int(file.Fd())); err != nil {
		return fmt.Errorf("fdatasync: %w", err)
	}
	return nil
}
