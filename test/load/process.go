package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a started program that has said where it listens.
type process struct {
	cmd     *exec.Cmd
	address string
	// started is how long it took until it listened.
	started time.Duration
	log     *os.File
}

// clockTick is the unit of CPU times in /proc.
const clockTick = 10 * time.Millisecond

// launch starts a program and waits for the line that names its address. What
// it logs goes to a file.
func launch(ctx context.Context, logPath, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	p := &process{cmd: exec.CommandContext(ctx, program, args...), log: log}
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), log.Close())
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	p.started = time.Since(began)
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on http://")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("%s did not start, see %s: %w", program, logPath, err), p.kill())
	}
	p.address = address
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the process
	return p, nil
}

// stop ends the process as it should be ended.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("stop, see %s: %w", p.log.Name(), err)
	}
	return p.log.Close()
}

// kill ends the process at once.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill: %w", err)
	}
	_ = p.cmd.Wait() // says that it was killed
	return p.log.Close()
}

// cpu returns the CPU time the process has used.
func (p *process) cpu() (time.Duration, error) {
	content, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	// The name in parentheses may hold spaces; utime and stime are the 12th
	// and 13th field after it.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: %w", io.ErrUnexpectedEOF)
	}
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err := errors.Join(err, err2); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(user+system) * clockTick, nil
}

// written returns how many bytes the process has caused to be written to
// disks.
func (p *process) written() (int64, error) {
	content, err := os.ReadFile(p.proc("io"))
	if err != nil {
		return 0, fmt.Errorf("read written bytes: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("read written bytes: %w", io.ErrUnexpectedEOF)
}

func (p *process) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), name)
}

// secrets are what init prints and the load needs.
type secrets struct {
	ProjectID   string `json:"project_id"`
	AccessToken string `json:"access_token"`
	ServerKey   string `json:"server_key"`
	CIToken     string `json:"ci_token"`
	ProjectKey  string `json:"project_key"`
}

// initialise makes a data folder.
func initialise(ctx context.Context, binary, dir string) (secrets, error) {
	out, err := exec.CommandContext(ctx, binary, "init", "--data", dir, "--json").Output()
	if err != nil {
		return secrets{}, fmt.Errorf("init: %w", err)
	}
	var s secrets
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("init: %w", err)
	}
	return s, nil
}

// folderBytes returns the size of the files below a folder.
func folderBytes(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // removed since
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", dir, err)
	}
	return total, nil
}
