package torture_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// erasurePoints are the steps of erasing, deleting and rewriting, at each of
// which the process dies once.
var erasurePoints = []string{
	"eventstore.erased", "eventstore.expired", "eventstore.swapping", "eventstore.swapped", "eventstore.filled",
	"intake.flushed", "intake.compacted", "eventstore.upgrading", "eventstore.upgraded",
}

// eraser runs the program of that name on one folder.
type eraser struct {
	*testing.T

	binary, dir string
	command     *exec.Cmd
	in          io.WriteCloser
	out         *bufio.Scanner
}

// start starts the program; it may die at once.
func (x *eraser) start(crashAt string, args ...string) (alive bool) {
	x.Helper()
	x.command = exec.CommandContext(x.Context(), x.binary, append([]string{x.dir}, args...)...)
	x.command.Env = environment("ACTIONPULSE_CRASH_AT=" + crashAt)
	x.command.Stderr = x.Output()
	in, err := x.command.StdinPipe()
	if err != nil {
		x.Fatal(err)
	}
	out, err := x.command.StdoutPipe()
	if err != nil {
		x.Fatal(err)
	}
	if err := x.command.Start(); err != nil {
		x.Fatal(err)
	}
	x.in, x.out = in, bufio.NewScanner(out)
	return x.out.Scan()
}

// ask sends a command and returns its answer; false if the process died first.
func (x *eraser) ask(format string, args ...any) (string, bool) {
	if _, err := fmt.Fprintf(x.in, format+"\n", args...); err != nil || !x.out.Scan() {
		return "", false
	}
	return x.out.Text(), true
}

// must is ask of a process that does not die.
func (x *eraser) must(format string, args ...any) string {
	x.Helper()
	answer, ok := x.ask(format, args...)
	if !ok {
		x.Fatalf("the process died at "+format, args...)
	}
	return answer
}

// end waits for the process and reports whether it was killed.
func (x *eraser) end() (killed bool) {
	x.Helper()
	if err := x.in.Close(); err != nil {
		x.Fatal(err)
	}
	_ = x.command.Wait() // what it says is in the state
	return wasKilled(x.command.ProcessState)
}

func eventID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// requests are what is sent before an erasure, and after it: ada's own events,
// those of an anon_id that becomes ada's, and bob's.
var (
	requestsBefore = []string{
		"track " + eventID(1) + " x -", "track " + eventID(2) + " y ada", "track " + eventID(3) + " z bob", "identify x ada",
		"settle", "track " + eventID(4) + " x -", "track " + eventID(5) + " z bob",
	}
	requestsAfter = []string{"track " + eventID(6) + " y ada", "track " + eventID(7) + " z bob"}
	upkeep        = []string{"settle", "rewrite", "purge"}
)

// story sends the steps from one on until the process dies or all are done, and
// returns the one it came to.
func (x *eraser) story(steps []string, from int) (reached int) {
	for ; from < len(steps); from++ {
		if _, ok := x.ask("%s", steps[from]); !ok {
			return from
		}
	}
	return from
}

// TestErasureKilledAtEachStep: the process dies at each step of an erasure that
// is raced by a backlog, of what is done after it and of the upgrade. Then the
// claims are rebuilt and every request is sent again: what was erased does not
// come back, everything else is there once.
func TestErasureKilledAtEachStep(t *testing.T) {
	t.Parallel()
	binary := buildEraser(t)
	for _, point := range erasurePoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			x := &eraser{T: t, binary: binary, dir: t.TempDir()}
			x.killAt(point)
			x.repeatAll()
		})
	}
}

// eraserVariable names a program with crash points that is built already.
const eraserVariable = "ACTIONPULSE_ERASER"

func buildEraser(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(eraserVariable); path != "" {
		return path
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "build", "-tags", "crashpoints", "-o", dir,
		"github.com/actionpulse/actionpulse/test/torture/eraser")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return filepath.Join(dir, "eraser")
}

// killAt tells the story to a process that dies at a step, and goes on with
// another one from there.
func (x *eraser) killAt(point string) {
	x.Helper()
	steps := append(append(append([]string{}, requestsBefore...), "erase ada"), append(append([]string{}, requestsAfter...), upkeep...)...)
	if point == "eventstore.expired" {
		steps = append(steps[:0:0], append([]string{
			"track " + eventID(9) + " w carol", "settle", "track " + eventID(10) + " w carol", "settle", "retain", // the newest row stays
		}, steps...)...)
	}
	setting := point + ":1"
	if strings.HasPrefix(point, "eventstore.upgrad") {
		x.upgradeFrom(setting)
		setting = ""
	}
	from := 0
	if x.start(setting) {
		from = x.story(steps, 0)
	}
	if killed := x.end(); killed != (setting != "") {
		x.Fatalf("killed %t at step %d, armed %q", killed, from, setting)
	}
	if !x.start("") {
		x.Fatal("the process did not start again")
	}
	if reached := x.story(steps, from); reached != len(steps) {
		x.Fatalf("the process died at %q", steps[reached])
	}
	if x.end() {
		x.Fatal("the process was killed")
	}
}

// upgradeFrom leaves a folder whose upgrade was cut short.
func (x *eraser) upgradeFrom(setting string) {
	x.Helper()
	if !x.start("") {
		x.Fatal("the process did not start")
	}
	x.must("track %s z bob", eventID(8))
	x.must("settle")
	before := x.must("usage")
	x.end()
	x.start("", "downgrade")
	x.end()
	if x.start(setting) || !x.end() {
		x.Fatalf("the process was not killed at %s", setting)
	}
	if !x.start("") {
		x.Fatal("the process did not start again")
	}
	if after := x.must("usage"); after != before {
		x.Fatalf("usage %s, want %s", after, before)
	}
	x.end()
}

// repeatAll has the claims rebuilt, sends every request again and compares.
func (x *eraser) repeatAll() {
	x.Helper()
	if !x.start("", "rebuild") {
		x.Fatal("the process did not start again")
	}
	for _, step := range append(append([]string{}, requestsBefore...), requestsAfter...) {
		if answer := x.must("%s", step); strings.HasPrefix(step, "track") && answer != "1" {
			x.Errorf("%q was taken again", step)
		}
		if strings.HasPrefix(step, "identify") { // it has no id, so it is new
			x.must("erase nobody")
		}
	}
	x.must("settle")
	if got := x.must("verify"); got != "true []" {
		x.Errorf("verify: %s", got)
	}
	if got := x.must("rows ada"); strings.Count(got, eventID(6)) != 1 ||
		strings.Contains(got, eventID(1)) || strings.Contains(got, eventID(2)) || strings.Contains(got, eventID(4)) {
		x.Errorf("ada has %s", got)
	}
	bobs := x.must("rows bob")
	for _, n := range []int{3, 5, 7} {
		if strings.Count(bobs, eventID(n)) != 1 {
			x.Errorf("bob has %s", bobs)
		}
	}
	position := x.must("erase ada")
	x.must("settle")
	if state := x.must("state ada %s", position); state != "applied" {
		x.Errorf("the last erasure is %s", state)
	}
	if got := x.must("rows ada"); got != "[]" {
		x.Errorf("ada still has %s", got)
	}
	if x.end() {
		x.Error("the process was killed")
	}
}
