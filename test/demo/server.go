package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is the binary on a data folder of its own, always at one address.
type server struct {
	binary, data, address string
	keys                  credentials
	running               *exec.Cmd
	log                   *os.File
}

// credentials are what init prints.
type credentials struct {
	ProjectID   string `json:"project_id"`
	AccessToken string `json:"access_token"`
	ServerKey   string `json:"server_key"`
	ProjectKey  string `json:"project_key"`
}

// newServer makes a data folder below a folder and starts a server on it.
func newServer(ctx context.Context, binary, dir string) (*server, error) {
	s := &server{binary: binary, data: filepath.Join(dir, "data")}
	out, err := exec.CommandContext(ctx, binary, "init", "--data", s.data, "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("make a data folder: %w", err)
	}
	if err := json.Unmarshal(out, &s.keys); err != nil {
		return nil, fmt.Errorf("read what init says: %w", err)
	}
	if s.address, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	if s.log, err = os.Create(filepath.Join(dir, "server.log")); err != nil {
		return nil, fmt.Errorf("keep the server's log: %w", err)
	}
	return s, s.start(ctx)
}

// freeAddress finds a port that is free, below those that the system hands out
// to connections: it is to be there again after a restart.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	for port := 20_000 + os.Getpid()%8_000; port < 32_000; port++ {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if listener, err := config.Listen(ctx, "tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("no port is free")
}

// start starts the server and waits until it listens. What is in the folder may
// have been left there by a process that was killed.
func (s *server) start(ctx context.Context) error {
	c := exec.CommandContext(ctx, s.binary, "serve", "--data", s.data, "--listen", s.address,
		"--storage.min_free_percent=0", "--storage.min_free_bytes=50MB")
	c.Stderr = s.log
	out, err := c.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	s.running = c
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "listening on ") {
		return errors.Join(fmt.Errorf("the server did not start, see %s", s.log.Name()), s.kill())
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the process
	return nil
}

// kill ends the process as kill -9 does: it gets to do nothing more.
func (s *server) kill() error {
	if err := s.running.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the server: %w", err)
	}
	_ = s.running.Wait() // says that it was killed
	return nil
}

// stop ends the process as an operator does.
func (s *server) stop() error {
	if err := s.running.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	if err := s.running.Wait(); err != nil {
		return fmt.Errorf("stop the server, see %s: %w", s.log.Name(), err)
	}
	return nil
}

// restart kills the server and starts it again; it returns how long nobody
// listened.
func (s *server) restart(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := s.kill(); err != nil {
		return 0, err
	}
	err := s.start(ctx)
	return time.Since(began), err
}

// verify has the binary compare the parts of the folder. It fails if they do
// not agree.
func (s *server) verify(ctx context.Context) error {
	c := exec.CommandContext(ctx, s.binary, "verify", "--data", s.data)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		return fmt.Errorf("verify: %w\n%s", err, out.String())
	}
	return nil
}
