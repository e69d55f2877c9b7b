package torture_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// refused demands that a server refuses the folder and names the repair.
func (x *torture) refused(b program) {
	x.Helper()
	server := b.serve(x.T, x.aside, nil)
	if server.await(x.T) {
		x.Fatal("a folder was served that had to be refused")
	}
	x.checkRefusal(server.end(x.T))
}

func (x *torture) checkRefusal(r result) {
	x.Helper()
	if r.code != exitRefused || !strings.Contains(r.stderr, "actionpulse repair") {
		x.Fatalf("the folder was not refused with the repair named: %s", r)
	}
}

func (x *torture) copyFolder(from, to string) {
	x.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		x.Fatal(err)
	}
}

func (x *torture) remove(path string) {
	x.Helper()
	if err := os.RemoveAll(path); err != nil {
		x.Fatal(err)
	}
}

// damageIntake spoils one file of the intake store of a killed server. The
// folder must be refused, or come up with everything; never with less. The
// server goes on with the folder as it was.
func (x *torture) damageIntake() {
	x.traffic(5)
	x.server.kill(x.T)
	b := x.program.on(filepath.Join(x.dir, "damaged"))
	x.copyFolder(x.program.data, b.data)
	what := x.damage(filepath.Join(b.data, "intake"))
	x.labour.callee.putAside(true)
	server := b.serve(x.T, x.aside, nil)
	if server.await(x.T) {
		x.Logf("%s: came up", what)
		server.drain(x.T)
		x.complete(b)
	} else {
		x.Logf("%s: refused", what)
		x.checkRefusal(server.end(x.T))
		x.repairDamaged(b)
	}
	x.labour.callee.putAside(false)
	x.remove(b.data)
	x.start()
}

// repairDamaged repairs a copy with a damaged intake store. What only that
// store held may be lost, but repair must say so.
func (x *torture) repairDamaged(b program) {
	done := b.repair(x.Context(), x.T)
	server := b.serve(x.T, x.aside, nil)
	if !server.await(x.T) {
		x.Fatalf("refused after a repair: %s", server.end(x.T))
	}
	server.drain(x.T)
	problems, lacking := x.model.checkRows(x.read(b), true)
	if lacking > done.Lost {
		problems = append(problems, fmt.Sprintf("%d acknowledged items are missing, and repair speaks of %d: %q", lacking, done.Lost, done.Done))
	}
	if len(problems) > 0 {
		x.Fatalf("seed %d, after a repair:\n%s", x.seed, strings.Join(problems, "\n"))
	}
	x.Logf("repaired, %d acknowledged items lost: %q", lacking, done.Done)
}

// damage flips a bit of a file that holds the store's data, or cuts the file
// short, or removes it.
func (x *torture) damage(dir string) string {
	x.Helper()
	var paths []string
	for _, pattern := range []string{"*.log", "*.sst", "MANIFEST-*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			x.Fatal(err)
		}
		if len(found) > 0 { // each kind of file as often as another
			paths = append(paths, found[x.rand.IntN(len(found))])
		}
	}
	path := paths[x.rand.IntN(len(paths))]
	content, err := os.ReadFile(path)
	if err != nil {
		x.Fatal(err)
	}
	name, at := filepath.Base(path), x.rand.IntN(max(1, len(content)))
	switch way := x.rand.IntN(10); {
	case way == 0:
		x.remove(path)
		return name + " removed"
	case way < 3:
		content = content[:at]
		name = fmt.Sprintf("%s cut short after %d bytes", name, at)
	case len(content) > 0:
		content[at] ^= 1 << x.rand.IntN(8)
		name = fmt.Sprintf("%s flipped at %d of %d", name, at, len(content))
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		x.Fatal(err)
	}
	return name
}
