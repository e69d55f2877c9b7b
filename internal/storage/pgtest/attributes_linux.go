package pgtest

import "syscall"

// attributes makes a process run as another user and end when this one does,
// even if it is killed.
func attributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGQUIT}
}
