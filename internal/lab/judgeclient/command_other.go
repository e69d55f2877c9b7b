//go:build !unix

package judgeclient

import "os/exec"

// inOwnGroup leaves a command as it is: it is killed alone.
func inOwnGroup(*exec.Cmd) {}
