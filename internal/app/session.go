package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A session is a conversation between a command and a running server, line by
// line, in which the server does something for as long as the command is there.
// It ends when either side goes, however that happens, or when the command has
// said nothing for sessionPatience: then it is as good as dead.
const (
	sessionPatience = 30 * time.Second
	// sessionPulse is how often a command that is busy says that it is there.
	sessionPulse = 5 * time.Second
	// sessionProtocol is what the connection is said to speak.
	sessionProtocol = "actionpulse-session"
)

// controlSession speaks with a command until it is gone. What it holds for the
// command is let go when it returns.
type controlSession func(ctx context.Context, l *line) error

// line is one side of a session.
type line struct {
	rw io.ReadWriteCloser
	in *bufio.Reader
	// patience puts off the end for silence; nil on the command's side.
	patience func() error
}

// message is what a command says and, without a step, what it hears.
type message struct {
	Step string `json:"step,omitempty"`
	// Error is why the server refuses; the session is over then.
	Error string `json:"error,omitempty"`
	// Store, Files, Bucket, Dir and Acknowledged belong to the steps of a backup.
	// Paths are names within the data folder: each side has its own path to it.
	Store        string   `json:"store,omitempty"`
	Files        []string `json:"files,omitempty"`
	Bucket       bool     `json:"bucket,omitempty"`
	Dir          string   `json:"dir,omitempty"`
	Acknowledged uint64   `json:"acknowledged,omitempty"`
}

// The step that only says that the command is there. It is not answered.
const stepAlive = "alive"

func (l *line) write(m message) error {
	content, err := json.Marshal(m)
	if err == nil {
		_, err = l.rw.Write(append(content, '\n'))
	}
	return err
}

func (l *line) read() (m message, err error) {
	for {
		if l.patience != nil {
			if err := l.patience(); err != nil {
				return m, err
			}
		}
		content, err := l.in.ReadBytes('\n')
		if err != nil {
			return m, err
		}
		if err := json.Unmarshal(content, &m); err != nil || m.Step != stepAlive {
			return m, err
		}
		m = message{}
	}
}

// startSession takes the connection of a request over.
func (s *controlServer) startSession(w http.ResponseWriter, r *http.Request, talk controlSession) {
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxCommand)) // what follows it on the connection are lines
	var conn net.Conn
	var rw *bufio.ReadWriter
	if err == nil {
		conn, rw, err = http.NewResponseController(w).Hijack()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.sessions.Go(func() {
		stop := context.AfterFunc(s.talking, func() { _ = conn.Close() }) // who reads or writes hears of it
		defer stop()
		l := &line{rw: conn, in: rw.Reader, patience: func() error { return conn.SetReadDeadline(time.Now().Add(sessionPatience)) }}
		_, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", sessionProtocol)
		if err == nil {
			err = talk(s.talking, l)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			s.log.Warn("a command did not come to its end", "error", err)
		}
		_ = conn.Close() // the command may have closed it
	})
}

// session begins a session with the server that holds the folder. It ends with
// ctx, and must be closed.
func (f folder) session(ctx context.Context, path string) (*line, error) {
	response, err := f.send(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	rw, ok := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !ok {
		body, err := io.ReadAll(io.LimitReader(response.Body, maxCommand))
		return nil, errors.Join(fmt.Errorf("the running server refused: %s", body), err, response.Body.Close())
	}
	return &line{rw: rw, in: bufio.NewReader(rw)}, nil
}

// do says a step and hears its answer.
func (l *line) do(step string) (message, error) {
	err := l.write(message{Step: step})
	var answer message
	if err == nil {
		answer, err = l.read()
	}
	if err != nil {
		return answer, fmt.Errorf("the running server is gone: %w", err)
	}
	if answer.Error != "" {
		return answer, fmt.Errorf("the running server refused: %s", answer.Error)
	}
	return answer, nil
}

// busy does something that takes long, and says meanwhile that the command is
// still there. It ends what it does when the server is gone.
func (l *line) busy(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	pulse := make(chan struct{})
	go func() {
		defer close(pulse)
		ticker := time.NewTicker(sessionPulse)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if err := l.write(message{Step: stepAlive}); err != nil {
					cancel(fmt.Errorf("the running server is gone: %w", err))
					return
				}
			}
		}
	}()
	err := fn(ctx)
	close(done)
	<-pulse
	return err
}
