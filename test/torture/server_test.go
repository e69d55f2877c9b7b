package torture_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The exit codes of the binary that the harness relies on.
const (
	exitOK      = 0
	exitRefused = 5
)

// patience is how long the harness waits for anything that must happen. It is
// generous: other work may keep the machine busy.
const patience = 2 * time.Minute

// process is a running server.
type process struct {
	command *exec.Cmd
	// listening is closed when the server takes requests, exited when it has
	// ended.
	listening, exited chan struct{}
	// stderr and err may be read once it has ended.
	stderr bytes.Buffer
	err    error
}

// serve starts a server on an address with further flags and environment.
func (b program) serve(t *testing.T, address string, flags []string, extra ...string) *process {
	t.Helper()
	p := &process{listening: make(chan struct{}), exited: make(chan struct{})}
	args := append([]string{
		"serve", "--data", b.data, "--listen", address, "--rate.requests_per_second=0", "--rate.browser_requests_per_second=0",
		"--eventstore.memory_limit=512MB", "--query.time_budget=2m", "--storage.min_free_percent=0", "--storage.min_free_bytes=50MB",
		"--flows.allow_private",
	}, flags...)
	p.command = exec.CommandContext(context.WithoutCancel(t.Context()), b.path, args...)
	p.command.Env = environment(extra...)
	p.command.Stderr = &p.stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go p.watch(started, stdout, b.log)
	if err := <-started; err != nil {
		t.Fatalf("start the server: %v", err)
	}
	t.Cleanup(func() {
		if !p.ended() {
			p.signal(t, syscall.SIGKILL)
			<-p.exited
		}
	})
	return p
}

// watch starts the process and waits for it, in a thread that lives as long:
// the kernel takes the end of the thread for the end of the parent.
func (p *process) watch(started chan<- error, stdout io.Reader, log string) {
	runtime.LockOSThread()
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	lines := bufio.NewScanner(stdout)
	for first := true; lines.Scan(); first = false {
		if first {
			close(p.listening)
		}
	}
	err = p.command.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		err = nil
	}
	p.err = errors.Join(err, lines.Err(), appendFile(log, p.stderr.Bytes()))
	close(p.exited)
}

func appendFile(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(content, "--\n"...))
	return errors.Join(err, file.Close())
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process, unless it has ended.
func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("signal %v: %v", s, err)
	}
}

// await returns true if the server takes requests, false if it has ended.
func (p *process) await(t *testing.T) bool {
	t.Helper()
	select {
	case <-p.listening:
		return true
	case <-p.exited:
		return false
	case <-time.After(patience):
		t.Fatal("the server neither started nor ended")
		return false
	}
}

// end waits until the process has ended.
func (p *process) end(t *testing.T) result {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.signal(t, syscall.SIGQUIT)
		<-p.exited
		t.Fatalf("the server did not end:\n%s", p.stderr.String())
	}
	if p.err != nil {
		t.Fatalf("the server could not be watched: %v", p.err)
	}
	return result{p.command.ProcessState.ExitCode(), wasKilled(p.command.ProcessState), "", p.stderr.String()}
}

// kill ends the server the hard way.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	if r := p.end(t); !r.killed {
		t.Fatalf("the server ended before it was killed: %s", r)
	}
}

// drain stops the server as an operator would.
func (p *process) drain(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if r := p.end(t); r.code != exitOK {
		t.Fatalf("the server did not stop as asked: %s", r)
	}
}

// portsTried counts the ports that were given out or were not free: tests that
// run at the same time get others.
var portsTried atomic.Int64

// freeAddresses finds two ports on loopback that stay free while no server
// uses them: the system does not hand them out to connections.
func freeAddresses(t *testing.T) (first, second string) {
	t.Helper()
	var config net.ListenConfig
	var free []string
	for tries := 0; len(free) < 2 && tries < 4000; tries++ {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+(os.Getpid()*7+int(portsTried.Add(1)))%8000)
		listener, err := config.Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		free = append(free, address)
	}
	if len(free) < 2 {
		t.Fatal("no ports are free")
	}
	return free[0], free[1]
}
