package actionpulsetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/actionpulsetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExample runs what the documentation shows.
func TestExample(t *testing.T) {
	t.Parallel()
	testPay(t)
}

// waits are those of a client whose clock they move on, so that none is waited.
type waits struct {
	mu   sync.Mutex
	list []time.Duration
	now  time.Time
}

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list, w.now = append(w.list, d), w.now.Add(d)
	return ctx.Err()
}

func (w *waits) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// clientOf is a client that repeats at once.
func clientOf(t *testing.T, s *actionpulsetest.Server) (*actionpulse.Client, *waits) {
	t.Helper()
	w := &waits{now: noon}
	client, err := actionpulse.New(s.URL, s.ProjectKey, actionpulse.WithHTTPClient(s.Client()),
		actionpulse.WithRetry(retry.Policy{Sleep: w.sleep, Now: w.clock}))
	if err != nil {
		t.Fatal(err)
	}
	return client, w
}

// ask sends a request as it is, and returns the status and the body.
func ask(t *testing.T, s *actionpulsetest.Server, request, credential, body string) (status int, answer string) {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	path, key, _ := strings.Cut(path, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+credential)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	response, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err == nil {
		err = response.Body.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// recorder is a test that notes how it fails.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failuresOf runs a test with a server, and returns how it has failed.
func failuresOf(run func(s *actionpulsetest.Server), options ...actionpulsetest.Option) []string {
	r := &recorder{}
	var done sync.WaitGroup
	done.Go(func() { // Fatalf ends it
		defer func() {
			for _, f := range r.cleanups {
				f()
			}
		}()
		run(actionpulsetest.NewServer(r, options...))
	})
	done.Wait()
	return r.failures
}

// TestWhatCannotBeMeantFailsTheTest: a fake that shrugs would have tests pass
// that show nothing.
func TestWhatCannotBeMeantFailsTheTest(t *testing.T) {
	t.Parallel()
	unknown := func(s *actionpulsetest.Server) {
		if status, body := ask(t, s, "GET /v1/nothing", s.ProjectKey, ""); status != http.StatusNotFound || !strings.Contains(body, `"not_found"`) {
			t.Errorf("%d %s", status, body)
		}
	}
	for _, c := range []struct {
		name, want string
		run        func(s *actionpulsetest.Server)
		options    []actionpulsetest.Option
	}{
		{"unknown path", "GET /v1/nothing", unknown, nil},
		{"unknown path, allowed", "", unknown, []actionpulsetest.Option{actionpulsetest.AllowUnknownPaths()}},
		{"fault that does not happen", "POST /v1/track", func(s *actionpulsetest.Server) {
			s.Script(actionpulsetest.LoseAnswer().On("POST /v1/track"))
		}, nil},
		{"fault of no route", `"POST /v1/trak"`, func(s *actionpulsetest.Server) {
			s.Script(actionpulsetest.LoseAnswer().On("POST /v1/trak"))
		}, nil},
		{"no status", "0 is no status", func(s *actionpulsetest.Server) {
			s.Script(actionpulsetest.Answer(0, api.CodeInternal, nil))
		}, nil},
		{"flow without SetFlow", "SetFlow", func(s *actionpulsetest.Server) {
			s.PublishFlow("greet", "0")
			if status, body := ask(t, s, "POST /v1/operations/execute k", s.ProjectKey, `{"flow":"greet","input":{}}`); status != http.StatusBadGateway {
				t.Errorf("%d %s", status, body)
			}
		}, nil},
		{"no amount", `"-1"`, func(s *actionpulsetest.Server) { s.Give("ada", "main", "-1") }, nil},
		{"no slug", `"A B"`, func(s *actionpulsetest.Server) { s.SetFlow("A B", nil) }, nil},
		{"no price", `"x"`, func(s *actionpulsetest.Server) { s.PublishFlow("greet", "x") }, nil},
		{"nothing wrong", "", func(s *actionpulsetest.Server) { s.Give("ada", "main", "1") }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			failures := failuresOf(c.run, c.options...)
			if c.want == "" && len(failures) > 0 || c.want != "" && (len(failures) != 1 || !strings.Contains(failures[0], c.want)) {
				t.Errorf("%q, want one that says %q", failures, c.want)
			}
		})
	}
}

// TestRunsThatCannotBe: what a flow's function says must be possible.
func TestRunsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]actionpulsetest.FlowFunc{
		"costs \"3\"":              returns("said", "3", nil),
		"costs \"much\"":           returns("said", "much", nil),
		"cannot fail with timeout": returns(nil, "", &actionpulsetest.FlowError{Code: "timeout"}),
		"is not JSON":              returns(func() {}, "", nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := failuresOf(func(s *actionpulsetest.Server) {
				s.SetFlow("greet", run)
				ask(t, s, "POST /v1/operations/execute k", s.ProjectKey, `{"flow":"greet","input":{}}`)
			})
			if len(failures) != 1 || !strings.Contains(failures[0], name) {
				t.Errorf("%q, want one that says %s", failures, name)
			}
		})
	}
}

func BenchmarkNewServer(b *testing.B) {
	for b.Loop() {
		if failures := failuresOf(func(*actionpulsetest.Server) {}); failures != nil {
			b.Fatal(failures)
		}
	}
}
