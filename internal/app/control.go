package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
)

// control is how commands on this machine reach a running server: a listener
// on loopback whose address and token lie in the data folder, readable by the
// folder's owner only.
type control struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

// controlServer answers the commands.
type controlServer struct {
	http *http.Server
	file string
	log  *slog.Logger
	// sessions are ended by endSessions.
	sessions    sync.WaitGroup
	talking     context.Context //nolint:containedctx // that of the sessions, which outlive their requests
	endSessions context.CancelFunc
}

// controlCommand does what one command asks for and returns what is answered,
// as JSON.
type controlCommand func(ctx context.Context, body io.Reader) (any, error)

// controlParams say what a server does for commands, each by its path.
type controlParams struct {
	Commands map[string]controlCommand
	Sessions map[string]controlSession
	Log      *slog.Logger
}

// startControl takes commands.
func (f folder) startControl(ctx context.Context, p controlParams) (*controlServer, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	c := control{Address: listener.Addr().String(), Token: rand.Text()}
	content, err := json.Marshal(c)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if err := atomicfile.Write(f.path(controlFile), content); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s := &controlServer{file: f.path(controlFile), log: p.Log}
	s.talking, s.endSessions = context.WithCancel(context.WithoutCancel(ctx))
	s.http = &http.Server{Handler: s.handler(c.Token, p), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the listener for commands stopped", "error", err)
		}
	}()
	return s, nil
}

// handler lets in who has the token.
func (s *controlServer) handler(token string, p controlParams) http.Handler {
	mux := http.NewServeMux()
	for path, run := range p.Commands {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { answerCommand(w, r, run, s.log) })
	}
	for path, talk := range p.Sessions {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.startSession(w, r, talk) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *controlServer) close() error {
	s.endSessions()
	err := errors.Join(os.Remove(s.file), s.http.Close())
	s.sessions.Wait()
	if err != nil {
		return fmt.Errorf("stop the listener for commands: %w", err)
	}
	return nil
}

// maxCommand is the most that the body of a command may hold.
const maxCommand = 64 << 10

func answerCommand(w http.ResponseWriter, r *http.Request, run controlCommand, log *slog.Logger) {
	result, err := run(r.Context(), http.MaxBytesReader(w, r.Body, maxCommand))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(result); err != nil {
		log.Warn("what a command asked for was not delivered", "error", err)
	}
}

// ask has the server that holds the folder do a command, with in as its body,
// and reads its answer into out.
func (f folder) ask(ctx context.Context, path string, in, out any) error {
	response, err := f.send(ctx, path, in)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("ask the running server: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the running server refused: %s", bytes.TrimSpace(body))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read the running server's answer: %w", err)
	}
	return nil
}

// send sends a command to the server that holds the folder.
func (f folder) send(ctx context.Context, path string, in any) (*http.Response, error) {
	var c control
	content, err := os.ReadFile(f.path(controlFile))
	if err != nil {
		return nil, fmt.Errorf("a process holds the data folder, but it does not say how to reach it: %w", err)
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return nil, fmt.Errorf("%s is malformed: %w", controlFile, err)
	}
	command, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("ask the running server: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Address+path, bytes.NewReader(command))
	if err != nil {
		return nil, fmt.Errorf("ask the running server: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the running server: %w", err)
	}
	return response, nil
}
