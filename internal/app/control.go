package app

import (
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
	"time"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/audit"
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
}

func (f folder) startControl(ctx context.Context, stores audit.Stores, log *slog.Logger) (*controlServer, error) {
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
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+c.Token)) != 1 {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		report, err := stores.Verify(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(report); err != nil {
			log.Warn("a report was not delivered", "error", err)
		}
	})
	s := &controlServer{
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, file: f.path(controlFile), log: log,
	}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the listener for commands stopped", "error", err)
		}
	}()
	return s, nil
}

func (s *controlServer) close() error {
	if err := errors.Join(os.Remove(s.file), s.http.Close()); err != nil {
		return fmt.Errorf("stop the listener for commands: %w", err)
	}
	return nil
}

// verifyRunning asks the server that holds the folder.
func (f folder) verifyRunning(ctx context.Context) (audit.Report, error) {
	var c control
	content, err := os.ReadFile(f.path(controlFile))
	if err != nil {
		return audit.Report{}, fmt.Errorf("a process holds the data folder, but it does not say how to reach it: %w", err)
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return audit.Report{}, fmt.Errorf("%s is malformed: %w", controlFile, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Address+"/verify", http.NoBody)
	if err != nil {
		return audit.Report{}, fmt.Errorf("ask the running server: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return audit.Report{}, fmt.Errorf("ask the running server: %w", err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return audit.Report{}, fmt.Errorf("ask the running server: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return audit.Report{}, fmt.Errorf("the running server could not verify: %s", body)
	}
	var report audit.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return report, fmt.Errorf("read the running server's report: %w", err)
	}
	return report, nil
}
