package app_test

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
)

var discard = slog.New(slog.DiscardHandler)

// site is a data folder and what init said of it.
type site struct {
	t     *testing.T
	dir   string
	setup account.SetupResult
	flags []string
}

func newSite(t *testing.T, flags ...string) *site {
	t.Helper()
	s := &site{t: t, dir: filepath.Join(t.TempDir(), "data"), flags: flags}
	var err error
	s.setup, err = app.Init(t.Context(), app.InitParams{
		Data: s.dir, Log: discard, Setup: account.SetupParams{Organization: "o", Project: "p", Email: "o@localhost"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// config returns the default settings with the site's flags applied.
func (s *site) config() config.Config {
	s.t.Helper()
	var c config.Config
	parser, err := kong.New(&c)
	if err != nil {
		s.t.Fatal(err)
	}
	flags := append([]string{"--data", s.dir, "--listen", "127.0.0.1:0", "--storage.min_free_bytes", "0", "--storage.min_free_percent", "0"}, s.flags...)
	if _, err := parser.Parse(flags); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// running is a site that is being served.
type running struct {
	*site
	url  string
	stop func() error
}

// serve starts the site; it is stopped at the end of the test at the latest.
func (s *site) serve() (*running, error) {
	s.t.Helper()
	c := s.config()
	ctx, cancel := context.WithCancel(context.Background())
	listening, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- app.Serve(ctx, app.ServeParams{
			Config: c, Log: discard,
			Fatal:     func(err error) { panic(err) },
			Listening: func(a net.Addr) { listening <- a },
		})
	}()
	select {
	case err := <-done:
		cancel()
		return nil, err
	case address := <-listening:
		r := &running{site: s, url: "http://" + address.String()}
		stopped := false
		r.stop = func() error {
			if stopped {
				return nil
			}
			stopped = true
			cancel()
			return <-done
		}
		s.t.Cleanup(func() {
			if err := r.stop(); err != nil {
				s.t.Error(err)
			}
		})
		return r, nil
	}
}

func (s *site) mustServe() *running {
	s.t.Helper()
	r, err := s.serve()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (r *running) mustStop() {
	r.t.Helper()
	if err := r.stop(); err != nil {
		r.t.Fatal(err)
	}
}

// post sends JSON and returns the status and the decoded answer.
func (r *running) post(path, secret, body string) (int, map[string]any) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
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

// track sends events with the server key and demands a 202.
func (r *running) track(ids ...string) map[string]any {
	r.t.Helper()
	var b bytes.Buffer
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"event_id":%q,"event":"e","user_id":"u"}`, id)
	}
	status, answer := r.post("/v1/track", r.setup.ServerKey, `{"events":[`+b.String()+`]}`)
	if status != http.StatusAccepted {
		r.t.Fatalf("%d %v", status, answer)
	}
	return answer
}

func (r *running) trackNew(n int) []string {
	r.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	r.track(ids...)
	return ids
}

func (s *site) verify() audit.Report {
	s.t.Helper()
	report, err := app.Verify(s.t.Context(), app.VerifyParams{Config: s.config().Folder, Log: discard})
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

func (s *site) repair(acceptLoss bool) app.RepairReport {
	s.t.Helper()
	report, err := app.Repair(s.t.Context(), app.RepairParams{
		Config: s.config().Folder, AcceptLoss: acceptLoss, Window: 48 * time.Hour, Log: discard,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

// copyOf copies the folder as it is now.
func (s *site) copyOf() string {
	s.t.Helper()
	to := filepath.Join(s.t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	return to
}

// replace puts a part of another folder in the place of this one's.
func (s *site) replace(part, from string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.dir, part)); err != nil {
		s.t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(from, part))
	if err != nil {
		s.t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(filepath.Join(s.dir, part), os.DirFS(filepath.Join(from, part)))
	} else {
		var content []byte
		if content, err = os.ReadFile(filepath.Join(from, part)); err == nil {
			err = os.WriteFile(filepath.Join(s.dir, part), content, 0o600)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) mustRefuse(want string) {
	s.t.Helper()
	_, err := s.serve()
	if !errors.Is(err, app.ErrRefused) || !strings.Contains(err.Error(), want) {
		s.t.Fatalf("got %v, want a refusal that says %q", err, want)
	}
}
