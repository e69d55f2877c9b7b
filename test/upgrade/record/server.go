package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

// errDied is returned by serve if the server ended before it took requests.
var errDied = errors.New("the server died")

// server is a process of the release.
type server struct {
	process *exec.Cmd
	client  *conversation.Client
	// ended is closed when the process has ended; err may be read then.
	ended chan struct{}
	err   error
}

// command is one of the release on a folder, without settings from outside.
func (r *recorder) command(ctx context.Context, data string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, r.binary, append(args, "--data", data)...)
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ACTIONPULSE_") })
	c.Stderr = os.Stderr
	return c
}

// serve starts a server that keeps answers and claims for as long as may be set.
func (r *recorder) serve(ctx context.Context, binary, delay, environment string) (*server, error) {
	s := &server{ended: make(chan struct{})}
	s.process = r.command(ctx, r.data, "serve", "--listen", "127.0.0.1:0", "--intake.window", "720h",
		"--credits.response_retention", "87600h", "--materializer.max_delay", delay, "--log.level", "error",
		"--storage.min_free_bytes", "0", "--storage.min_free_percent", "0")
	s.process.Path = binary
	if environment != "" {
		s.process.Env = append(s.process.Env, environment)
	}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	listening := lines.Scan()
	_, url, _ := strings.Cut(lines.Text(), "listening on ")
	go func() {
		for lines.Scan() { // nothing more is said
		}
		s.err = s.process.Wait()
		close(s.ended)
	}()
	if !listening {
		<-s.ended
		return nil, errors.Join(errDied, s.err)
	}
	s.client = &conversation.Client{URL: url, Credentials: r.fixture.Credentials, HTTP: http.DefaultClient}
	return s, nil
}

// stop has the server store what it has taken and end.
func (s *server) stop() error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-s.ended
	return s.err
}

// kill ends the server at once.
func (s *server) kill() error {
	if err := s.process.Process.Kill(); err != nil {
		return err
	}
	<-s.ended
	return nil
}
