package executionstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// What a child is told by its environment.
const (
	childPath    = "EXECUTION_TEST_PATH"
	childURL     = "EXECUTION_TEST_URL"
	childProject = "EXECUTION_TEST_PROJECT"
	// childRun names the keys of its requests; "" has it answer calls only when
	// it is told to, and ask for nothing.
	childRun = "EXECUTION_TEST_RUN"
)

// childFlows are what children run, by turns.
var childFlows = map[string]string{
	"fails":   strings.ReplaceAll(nested, "%[1]s", ""),
	"retries": strings.ReplaceAll(nested, "%[1]s", ", on_interrupt: retry"),
}

// wish is the n-th request of a run.
func wish(run string, n int) order {
	o := order{key: fmt.Sprintf("%s/%d", run, n), flow: "fails", customer: "ada"}
	if n%2 == 1 {
		o.flow = "retries"
	}
	if n%3 == 0 {
		o.mode = execution.Async
	}
	return o
}

// childLease is how long the leases of children are.
const childLease = 2 * time.Second

// child runs executions until it is killed. It says of each call what its key
// is, before it is answered, and of each request which execution it has made.
func child() int {
	db, err := sqldb.Open(context.Background(), sqldb.Options{Path: os.Getenv(childPath), URL: os.Getenv(childURL)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	e := engine{}
	if os.Getenv(childURL) != "" {
		e.lease = childLease
	}
	b := openBench(db, os.Getenv(childProject), e)
	b.callee.answer = func(_ context.Context, r *step.Run, name string) (step.Result, error) {
		fmt.Println("call", r.Key)
		if os.Getenv(childRun) == "" {
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		}
		return step.Result{Value: map[string]any{"output": name}}, nil
	}
	s := b.start(3)
	if os.Getenv(childRun) == "" {
		select {}
	}
	var all sync.WaitGroup
	for worker := range 3 {
		all.Go(func() {
			for n := worker; ; n += 3 {
				done, err := s.executeUntil(context.Background(), b, wish(os.Getenv(childRun), n))
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					continue
				}
				fmt.Println("made", n, done.Execution.ID)
			}
		})
	}
	all.Wait()
	return 0
}

// victims are children that were killed, and what they have said.
type victims struct {
	options sqldb.Options
	project string
	// made are the executions of keys, calls counts calls by derived key.
	made  map[string]string
	calls map[string]int
}

func newVictims(t *testing.T, e engine) *victims {
	t.Helper()
	v := &victims{options: e.open(t, storagetest.Accounts), made: map[string]string{}, calls: map[string]int{}}
	v.project = storagetest.SetupOf(t, v.options).Project.ID
	db, err := sqldb.Open(t.Context(), v.options)
	if err != nil {
		t.Fatal(err)
	}
	b := openBench(db, v.project, e)
	for slug, yaml := range childFlows {
		b.publish(t, slug, yaml)
	}
	b.topup(t, "ada", "1000000")
	b.credits.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return v
}

// start starts a child.
func (v *victims) start(t *testing.T, binary, run, point string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Scanner) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), childPath+"="+v.options.Path, childURL+"="+v.options.URL, childProject+"="+v.project, childRun+"="+run,
		"ACTIONPULSE_CRASH_AT="+point)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewScanner(stdout)
}

// run lets a child work until it dies at a point, or is killed after it has said
// a number of things.
func (v *victims) run(t *testing.T, binary, run, point string, lines int) {
	t.Helper()
	cmd, _, out := v.start(t, binary, run, point)
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	for said := 1; out.Scan(); said++ {
		var n int
		var id string
		if key, ok := strings.CutPrefix(out.Text(), "call "); ok {
			v.calls[key]++
		} else if _, err := fmt.Sscanf(out.Text(), "made %d %s", &n, &id); err == nil && len(id) == 36 {
			v.made[wish(run, n).key] = id
		}
		if said == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); !strings.Contains(fmt.Sprint(err), "killed") {
		t.Fatalf("the child ended with %v", err)
	}
}

// crashBinary builds this test with points at which it dies.
func crashBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "execution.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "crashpoints", "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the child: %v\n%s", err, out)
	}
	return path
}

// A process that runs executions is killed at every point, and at moments of no
// choice. Another goes on: every key is answered, no finished step has run
// twice, and what was held is settled.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	binary := crashBinary(t)
	for _, e := range []engine{{"SQLite", storagetest.SQLite, 0}, {"PostgreSQL", storagetest.PostgreSQL, childLease}} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			v := newVictims(t, e)
			for i, point := range []string{
				"movements.claimed", "movements.written", "movements.committed", "step.begun", "step.answered", "step.finished", "execution.ended",
			} {
				v.run(t, binary, point, fmt.Sprint(point, ":", 1+5*i%7), -1)
			}
			v.run(t, binary, "random", "", 20)
			v.check(t, e)
		})
	}
}

// check goes on with what was left, and looks at everything.
func (v *victims) check(t *testing.T, e engine) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), v.options)
	if err != nil {
		t.Fatal(err)
	}
	b := openBench(db, v.project, e)
	b.expire(t)
	s := b.start(8)
	defer func() {
		s.stop()
		b.credits.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	left := b.count(t, `executions WHERE finished_at IS NULL`)
	list, more, err := s.List(t.Context(), execution.ListQuery{ProjectID: v.project, Limit: 1000})
	if err != nil || more {
		t.Fatal(err)
	}
	for i := range list {
		x := s.ended(t, b, list[i].ID)
		if x.Status != execution.Succeeded && (x.Flow != "fails" || x.Failure == nil || x.Failure.Code != api.CodeOutcomeUnknown || x.Charged < perRun) {
			t.Errorf("%+v", x)
		}
		if x.Status == execution.Succeeded && (string(x.Output) != nestedOutput || x.Charged.String() != nestedCharged) {
			t.Errorf("%s, charged %s", x.Output, x.Charged)
		}
		if id := v.made[x.Key]; id != "" && id != x.ID {
			t.Errorf("%s has made %s, and is now %s", x.Key, id, x.ID)
		}
		delete(v.made, x.Key)
	}
	if len(v.made) > 0 {
		t.Errorf("%v are gone", v.made)
	}
	v.count(t, b)
	b.settled(t)
	if left == 0 || len(v.calls) < 20 {
		t.Errorf("%d were left, %d calls", left, len(v.calls))
	}
}

// count compares the calls that were made with what the journal says.
func (v *victims) count(t *testing.T, b *bench) {
	t.Helper()
	for key, n := range b.callee.counts {
		v.calls[key] += n
	}
	for key, n := range v.calls {
		sent := b.count(t, `execution_calls WHERE derived_key = $1`, key)
		again := b.count(t, `execution_calls k JOIN executions x ON x.number = k.execution JOIN flows f ON f.id = x.flow_id
			WHERE k.derived_key = $1 AND f.slug = 'retries'`, key)
		if n > sent || n > 1 && again == 0 {
			t.Errorf("%s was called %d times, and journalled %d times", key, n, sent)
		}
	}
	if n := b.count(t, `(SELECT 1 FROM execution_calls WHERE status = 'succeeded' GROUP BY derived_key HAVING COUNT(*) > 1) AS twice`); n > 0 {
		t.Errorf("%d steps have finished twice", n)
	}
}

// A process is stopped for longer than its lease while its call runs, and wakes
// when another has done its work: it changes nothing any more.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	v := newVictims(t, engine{"PostgreSQL", storagetest.PostgreSQL, childLease})
	db, err := sqldb.Open(t.Context(), v.options)
	if err != nil {
		t.Fatal(err)
	}
	b := openBench(db, v.project, engine{lease: time.Minute})
	defer func() {
		b.credits.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, in, out := v.start(t, own, "", "")
	idle := b.start(0)
	defer idle.stop()
	b.publish(t, "one", "steps: [{id: a, type: http, on_interrupt: retry}]\nprice: {per_run: \"1\"}\n")
	x := idle.must(t, b, order{key: "k", flow: "one", customer: "ada", mode: execution.Async})
	if !out.Scan() || out.Text() != "call "+x.ID+":a" {
		t.Fatalf("the child says %q", out.Text())
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	other := b.start(1)
	defer other.stop()
	x = other.ended(t, b, x.ID)
	if x.Status != execution.Succeeded || x.Lease.Epoch != 2 || b.callee.count(x.ID+":a") != 1 {
		t.Errorf("%+v", x)
	}
	other.stop()
	if err := errors.Join(in.Close(), cmd.Process.Signal(syscall.SIGCONT)); err != nil { // its calls are answered now
		t.Fatal(err)
	}
	next := idle.must(t, b, order{key: "k2", flow: "one", customer: "ada", mode: execution.Async})
	idle.ended(t, b, next.ID) // by the child, which has done with the first one
	if now, err := idle.Get(t.Context(), b.project, x.ID); err != nil || now.Lease.Epoch != 2 || !now.FinishedAt.Equal(x.FinishedAt) {
		t.Errorf("%+v %v", now, err)
	}
	if n := b.count(t, `execution_calls WHERE status = 'succeeded' AND execution = $1`, x.Number); n != 1 {
		t.Errorf("%d calls have succeeded", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	b.settled(t)
}
