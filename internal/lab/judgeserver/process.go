package judgeserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"
)

const (
	// upWithin is how long a server may take until it answers.
	upWithin = time.Minute
	// upAgain is the pause between two questions whether it does.
	upAgain = 50 * time.Millisecond
)

// RestartBy returns a restart that runs a command of the shell, which may
// restart the server in any way, and then waits until an address answers
// anything but 502, 503 and 504.
func RestartBy(command, address string, log io.Writer) func(context.Context) error {
	return func(ctx context.Context) error {
		shell := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // running it is what was asked for
		shell.Stdout, shell.Stderr = log, log
		if err := shell.Run(); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		return up(ctx, address, nil)
	}
}

// Process is a server that the lab runs itself.
type Process struct {
	command, address string
	log              io.Writer
	running          *exec.Cmd
	// ended says how the process ended.
	ended chan string
}

// Start runs a command of the shell that serves, and returns when an address
// answers.
func Start(ctx context.Context, command, address string, log io.Writer) (*Process, error) {
	p := &Process{command: command, address: address, log: log}
	return p, p.start(ctx)
}

func (p *Process) start(ctx context.Context) error {
	p.running = exec.Command("sh", "-c", p.command) //nolint:gosec,noctx // running it is what was asked for; Kill ends it
	p.running.Stdout, p.running.Stderr = p.log, p.log
	inOwnGroup(p.running)
	if err := p.running.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	running, ended := p.running, make(chan string, 1)
	p.ended = ended
	go func() { ended <- fmt.Sprint(running.Wait()) }()
	if err := up(ctx, p.address, ended); err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// Restart kills the server without a warning and starts it again.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Kill(); err != nil {
		return err
	}
	return p.start(ctx)
}

// Kill ends the server, and all that it has started, without a warning.
func (p *Process) Kill() error {
	if p.ended == nil {
		return nil
	}
	err := killGroup(p.running)
	<-p.ended
	p.ended = nil
	if err != nil {
		return fmt.Errorf("killing the server: %w", err)
	}
	return nil
}

// up waits until a server answers; ended, if not nil, says that it will not.
func up(ctx context.Context, address string, ended chan string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, upWithin, fmt.Errorf("the server does not answer within %s", upWithin))
	defer cancel()
	ticker := time.NewTicker(upAgain)
	defer ticker.Stop()
	for {
		if answers(ctx, address) {
			return nil
		}
		select {
		case <-ticker.C:
		case how := <-ended:
			ended <- how
			return fmt.Errorf("the server has ended by itself: %s", how)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil || response.Body.Close() != nil {
		return false
	}
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}
