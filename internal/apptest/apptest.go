// Package apptest makes data folders and serves them within a test, as the
// binary would: real stores, a real listener, no fakes.
package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/audit"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/intake"
)

// Discard is a log that nobody reads.
var Discard = slog.New(slog.DiscardHandler)

// Site is a data folder and what init said of it.
type Site struct {
	t *testing.T
	// Dir is the folder.
	Dir string
	// Setup is what init printed.
	Setup account.SetupResult
	// Flags are given to serve.
	Flags []string
	// Clock stamps what is taken in; nil is the machine's.
	Clock intake.Clock
	// Now stamps what is stored beside the events; nil is the machine's.
	Now func() time.Time
}

// At is a data folder that was made elsewhere; flags are given to serve.
func At(t *testing.T, dir string, flags ...string) *Site {
	t.Helper()
	return &Site{t: t, Dir: dir, Flags: flags}
}

// New makes a data folder; flags are given to serve, and say which database to
// use. Folders with SQLite are alike within a process, identity and credentials
// included; NewOwn makes one that is not.
func New(t *testing.T, flags ...string) *Site {
	t.Helper()
	s := &Site{t: t, Dir: filepath.Join(t.TempDir(), "data"), Flags: flags}
	if s.Config().Database != "" {
		return NewOwn(t, flags...)
	}
	from, err := made()
	if err == nil {
		err = from.write(s.Dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Setup = from.setup
	return s
}

// Config returns the default settings with the site's flags applied.
func (s *Site) Config() config.Config {
	s.t.Helper()
	var c config.Config
	parser, err := kong.New(&c)
	if err != nil {
		s.t.Fatal(err)
	}
	flags := append([]string{"--data", s.Dir, "--listen", "127.0.0.1:0", "--storage.min_free_bytes", "0", "--storage.min_free_percent", "0"}, s.Flags...)
	if _, err := parser.Parse(flags); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// Running is a site that is being served.
type Running struct {
	*Site
	// URL is where it listens.
	URL string
	// Stop drains the server, once.
	Stop func() error
}

// Serve starts the site; it is stopped at the end of the test at the latest.
func (s *Site) Serve() (*Running, error) {
	s.t.Helper()
	c := s.Config()
	ctx, cancel := context.WithCancel(context.Background())
	listening, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- app.Serve(ctx, app.ServeParams{
			Config: c, Log: Discard, Clock: s.Clock, Now: s.Now,
			Fatal:     func(err error) { panic(err) },
			Listening: func(a net.Addr) { listening <- a },
		})
	}()
	select {
	case err := <-done:
		cancel()
		return nil, err
	case address := <-listening:
		r := &Running{Site: s, URL: "http://" + address.String()}
		stopped := false
		r.Stop = func() error {
			if stopped {
				return nil
			}
			stopped = true
			cancel()
			return <-done
		}
		s.t.Cleanup(func() {
			if err := r.Stop(); err != nil {
				s.t.Error(err)
			}
		})
		return r, nil
	}
}

// MustServe starts the site or ends the test.
func (s *Site) MustServe() *Running {
	s.t.Helper()
	r, err := s.Serve()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// MustStop drains the server.
func (r *Running) MustStop() {
	r.t.Helper()
	if err := r.Stop(); err != nil {
		r.t.Fatal(err)
	}
}

// Post sends JSON and returns the status and the decoded answer.
func (r *Running) Post(path, secret, body string) (int, map[string]any) {
	r.t.Helper()
	return r.Call(http.MethodPost, path, secret, body)
}

// Call is Post for any method.
func (r *Running) Call(method, path, secret, body string) (int, map[string]any) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		r.t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(content, &answer); err != nil {
		r.t.Fatalf("%d %s: %v", response.StatusCode, content, err)
	}
	return response.StatusCode, answer
}

// Track sends events with the server key and demands a 202.
func (r *Running) Track(ids ...string) map[string]any {
	r.t.Helper()
	var b bytes.Buffer
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"event_id":%q,"event":"e","user_id":"u"}`, id)
	}
	status, answer := r.Post("/v1/track", r.Setup.ServerKey, `{"events":[`+b.String()+`]}`)
	if status != http.StatusAccepted {
		r.t.Fatalf("%d %v", status, answer)
	}
	return answer
}

// TrackNew sends n events with new ids, which it returns.
func (r *Running) TrackNew(n int) []string {
	r.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	r.Track(ids...)
	return ids
}

// Verify compares the stores; a difference is in the report.
func (s *Site) Verify() audit.Report {
	s.t.Helper()
	report, err := app.Verify(s.t.Context(), app.VerifyParams{Config: s.Config().Folder, Log: Discard})
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

// Repair repairs the folder.
func (s *Site) Repair(acceptLoss bool) app.RepairReport {
	s.t.Helper()
	report, err := app.Repair(s.t.Context(), app.RepairParams{
		Config: s.Config().Folder, AcceptLoss: acceptLoss, Window: 48 * time.Hour, Log: Discard,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

// Copy copies the folder as it is now.
func (s *Site) Copy() string {
	s.t.Helper()
	to := filepath.Join(s.t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(s.Dir)); err != nil {
		s.t.Fatal(err)
	}
	return to
}

// Replace puts a part of another folder in the place of this one's.
func (s *Site) Replace(part, from string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.Dir, part)); err != nil {
		s.t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(from, part))
	if err != nil {
		s.t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(filepath.Join(s.Dir, part), os.DirFS(filepath.Join(from, part)))
	} else {
		var content []byte
		if content, err = os.ReadFile(filepath.Join(from, part)); err == nil {
			err = os.WriteFile(filepath.Join(s.Dir, part), content, 0o600)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// MustRefuse demands that the folder is refused, in words that hold want.
func (s *Site) MustRefuse(want string) {
	s.t.Helper()
	_, err := s.Serve()
	if !errors.Is(err, app.ErrRefused) || !strings.Contains(err.Error(), want) {
		s.t.Fatalf("got %v, want a refusal that says %q", err, want)
	}
}

// Bare is a folder that was never initialised.
func Bare(t *testing.T) *Site {
	t.Helper()
	return &Site{t: t, Dir: t.TempDir()}
}
