package torture_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// crashPoint is a step at which the process can be told to die.
type crashPoint struct {
	name string
	// most bounds how often the step is passed before.
	most int
	// repair says that the step is one of the command repair, replace that it
	// is one only if the intake store is missing.
	repair, replace bool
}

var crashPoints = []crashPoint{
	{name: "generation.noted", most: 1},
	{name: "intake.decided", most: 20},
	{name: "intake.applied", most: 20},
	{name: "intake.synced", most: 20},
	{name: "materializer.read", most: 5},
	{name: "materializer.applied", most: 5},
	{name: "materializer.trimmed", most: 5},
	{name: "eventstore.flushed", most: 5},
	{name: "eventstore.committed", most: 5},
	{name: "marker.claimed", most: 5},
	{name: "marker.created", most: 5},
	{name: "marker.committed", most: 5},
	{name: "repair.replaced", most: 1, repair: true, replace: true},
	{name: "rebuild.cleared", most: 1, repair: true},
	{name: "rebuild.written", most: 1, repair: true},
	{name: "rebuild.committed", most: 1, repair: true},
	{name: "movements.claimed", most: 20},
	{name: "movements.written", most: 20},
	{name: "movements.committed", most: 20},
	{name: "execution.ended", most: 5},
	{name: "step.begun", most: 5},
	{name: "step.answered", most: 5},
	{name: "step.finished", most: 5},
}

// killAtPoint has the process die at a step.
func (x *torture) killAtPoint(p crashPoint) {
	setting := "ACTIONPULSE_CRASH_AT=" + p.name + ":" + strconv.Itoa(1+x.rand.IntN(p.most))
	x.server.drain(x.T)
	if p.repair {
		if p.replace || x.rand.IntN(2) == 0 {
			x.remove(filepath.Join(x.program.data, "intake"))
		}
		if r := x.program.run(x.Context(), x.T, []string{setting}, "repair"); !r.killed {
			x.Fatalf("repair did not come to %s: %s", setting, r)
		}
		x.unfinishedRepair()
	} else {
		x.server = x.program.serve(x.T, x.address, x.moods(), setting)
		if r := x.server.end(x.T); !r.killed {
			x.Fatalf("the server did not die at %s: %s", setting, r)
		}
	}
	x.armed[p.name]++
	x.start()
}

// unfinishedRepair: after a repair that was cut short a server comes up with
// everything or refuses the folder, until it has been repaired.
func (x *torture) unfinishedRepair() {
	server := x.program.serve(x.T, x.aside, nil)
	if server.await(x.T) {
		server.drain(x.T)
		x.program.verify(x.Context(), x.T)
		return
	}
	x.checkRefusal(server.end(x.T))
	if r := x.program.repair(x.Context(), x.T); r.Lost != 0 {
		x.Fatalf("a second repair lost something: %+v", r)
	}
}

// crashesElsewhere are steps that a server in a run of this harness does not
// come to; tests of their own kill the process there.
var crashesElsewhere = []string{
	// erasure_test.go
	"eventstore.upgrading", "eventstore.upgraded", "eventstore.erased", "eventstore.expired",
	"eventstore.swapping", "eventstore.swapped", "eventstore.filled", "intake.flushed", "intake.compacted",
	// privacy_test.go
	"privacy.begun", "privacy.recorded", "privacy.stored", "privacy.replays", "privacy.customers", "privacy.rewritten", "privacy.purged",
	"privacy.archived",
	// replay_test.go
	"replay.claimed", "replay.stored", "replay.written", "replay.committed", "replay.deleted", "replay.swept",
	// alert_test.go
	"alert.written",
	// backup_test.go
	"backup.held", "backup.checkpointed", "backup.copied", "backup.written",
	"restore.copied", "restore.filled", "restore.noted", "restore.loaded",
}

var crashCall = regexp.MustCompile(`crash\.Point\(("[^"]*")?`)

// TestEveryCrashPointIsArmed: a new crash point is one at which the harness
// kills the process.
func TestEveryCrashPointIsArmed(t *testing.T) {
	var found []string
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, call := range crashCall.FindAllSubmatch(content, -1) {
			if len(call[1]) == 0 {
				t.Errorf("%s: a crash point must be named where it is", path)
			}
			found = append(found, strings.Trim(string(call[1]), `"`))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	armed := slices.Clone(crashesElsewhere)
	for _, p := range crashPoints {
		armed = append(armed, p.name)
	}
	slices.Sort(found)
	slices.Sort(armed)
	if !slices.Equal(found, armed) {
		t.Errorf("crash points in the code: %v; armed: %v", found, armed)
	}
}
