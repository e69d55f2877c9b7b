//go:build unix

package judgeserver

import (
	"errors"
	"os/exec"
	"syscall"
)

// inOwnGroup makes a command the head of a process group, so that all it has
// started can be killed with it.
func inOwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a group; one that has ended is no error.
func killGroup(cmd *exec.Cmd) error {
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
