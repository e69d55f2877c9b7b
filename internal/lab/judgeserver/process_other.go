//go:build !unix

package judgeserver

import (
	"errors"
	"os"
	"os/exec"
)

func inOwnGroup(*exec.Cmd) {}

// killGroup kills the process alone; one that has ended is no error.
func killGroup(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
