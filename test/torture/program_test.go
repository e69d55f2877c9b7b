package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// built is the real binary with crash points, built once for all tests, in a
// folder that TestMain removes.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// binaryVariable names a binary with crash points that is built already.
const binaryVariable = "ACTIONPULSE_BINARY"

func buildBinary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(binaryVariable); path != "" {
		return path
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "actionpulse-binary-"); built.err != nil {
			return
		}
		command := exec.CommandContext(t.Context(), "go", "build", "-tags", "crashpoints", "-o", built.dir,
			"github.com/actionpulse/actionpulse/cmd/actionpulse")
		if out, err := command.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%s: %w\n%s", command, err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "actionpulse")
}

// program runs the commands of actionpulse on one data folder.
type program struct {
	path string
	data string
	// log is the file that servers log to.
	log string
}

// on returns the same binary for another folder.
func (b program) on(data string) program {
	b.data = data
	return b
}

// environment is that of the test, without settings of the program.
func environment(extra ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ACTIONPULSE_") }), extra...)
}

// result is what a command that ran to its end showed.
type result struct {
	code           int
	killed         bool
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d, killed %t\n%s%s", r.code, r.killed, r.stdout, r.stderr)
}

// run runs a command to its end.
func (b program) run(ctx context.Context, t *testing.T, extra []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, b.path, append(args, "--data", b.data)...)
	command.Env = environment(extra...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); (err != nil && !ended) || ctx.Err() != nil {
		t.Fatalf("actionpulse %s: %v\n%s", args, err, stderr.String())
	}
	return result{command.ProcessState.ExitCode(), wasKilled(command.ProcessState), stdout.String(), stderr.String()}
}

func wasKilled(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// credentials are what init prints.
type credentials struct {
	ProjectID    string `json:"project_id"`
	AccessToken  string `json:"access_token"`
	BrowserToken string `json:"browser_token"`
	ServerKey    string `json:"server_key"`
	LegacyKey    string `json:"legacy_key"`
	CIToken      string `json:"ci_token"`
	ProjectKey   string `json:"project_key"`
}

// secrets returns the keys by kind.
func (c credentials) secrets() map[string]string {
	return map[string]string{"browser": c.BrowserToken, "server": c.ServerKey, "legacy": c.LegacyKey}
}

func (b program) init(ctx context.Context, t *testing.T) (c credentials) {
	t.Helper()
	r := b.run(ctx, t, nil, "init", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &c); err != nil || r.code != exitOK {
		t.Fatalf("init: %v, %s", err, r)
	}
	return c
}

// report is what verify prints.
type report struct {
	OK          bool     `json:"ok"`
	Backlog     uint64   `json:"backlog"`
	Rows        int      `json:"rows"`
	Quarantined int      `json:"quarantined"`
	OpenHolds   int      `json:"open_holds"`
	Differences []string `json:"differences"`
}

// verify demands that the stores agree and that nothing was set aside.
func (b program) verify(ctx context.Context, t *testing.T) (r report) {
	t.Helper()
	out := b.run(ctx, t, nil, "verify", "--json")
	if err := json.Unmarshal([]byte(out.stdout), &r); err != nil || out.code != exitOK || !r.OK || r.Quarantined != 0 {
		t.Fatalf("verify: %v, %s", err, out)
	}
	return r
}

// repaired is what repair prints.
type repaired struct {
	Done []string `json:"done"`
	// Lost is how many acknowledged items it found in neither store.
	Lost int `json:"lost"`
}

// repair demands that a repair succeeds.
func (b program) repair(ctx context.Context, t *testing.T) (r repaired) {
	t.Helper()
	out := b.run(ctx, t, nil, "repair", "--json")
	if err := json.Unmarshal([]byte(out.stdout), &r); err != nil || out.code != exitOK {
		t.Fatalf("repair: %v, %s", err, out)
	}
	return r
}
