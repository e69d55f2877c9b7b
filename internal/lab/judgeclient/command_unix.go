//go:build unix

package judgeclient

import (
	"os/exec"
	"syscall"
)

// inOwnGroup has a command killed together with all that it has started.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
