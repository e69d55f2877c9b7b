//go:build unix && !linux

package pgtest

import "syscall"

// attributes makes a process run as another user.
func attributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who}
}
