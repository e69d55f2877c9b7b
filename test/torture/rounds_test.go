package torture_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// round is one thing that happens to a running server. It starts and ends with
// one that takes requests.
type round struct {
	name string
	run  func(x *torture)
}

var rounds = []round{
	{"killed at random", (*torture).killAtRandom},
	{"killed at random, twice in a row", (*torture).killTwice},
	{"stopped and continued", (*torture).stopAndContinue},
	{"two servers", (*torture).secondServer},
	{"intake removed", (*torture).removeIntake},
	{"mark removed", (*torture).removeMark},
	{"intake damaged", (*torture).damageIntake},
	{"older intake", (*torture).olderIntake},
	{"older events", (*torture).olderEvents},
}

// each runs one round of each kind, and one for each crash point, in random
// order; then more of them until the time is over.
func (x *torture) each() {
	list := append([]round(nil), rounds...)
	for _, p := range crashPoints {
		list = append(list, round{"killed at " + p.name, func(x *torture) { x.killAtPoint(p) }})
	}
	list = slices.DeleteFunc(list, func(r round) bool { return !strings.Contains(r.name, *onlyFlag) })
	if len(list) == 0 {
		x.Fatalf("no round is called %s", *onlyFlag)
	}
	for _, i := range x.rand.Perm(len(list)) {
		x.round(list[i])
	}
	for time.Since(x.began) < *durationFlag {
		x.round(list[x.rand.IntN(len(list))])
	}
}

func (x *torture) round(r round) {
	began := time.Now()
	x.rounds++
	x.traffic(10)
	r.run(x)
	x.traffic(1)
	x.probe()
	c, _ := x.model.progress()
	x.Logf("%7s round %d, %s: %.1f s; %+v", time.Since(x.began).Round(100*time.Millisecond), x.rounds, r.name, time.Since(began).Seconds(), c)
}

func (x *torture) killAtRandom() {
	x.traffic(1 + x.rand.IntN(30))
	x.pause(500 * time.Millisecond)
	x.server.kill(x.T)
	x.start()
}

// killTwice kills the server again while it is starting or has just started.
func (x *torture) killTwice() {
	x.pause(500 * time.Millisecond)
	x.server.kill(x.T)
	x.server = x.program.serve(x.T, x.address, x.moods())
	x.pause(time.Second)
	x.server.kill(x.T)
	x.start()
}

// stopAndContinue holds the server still, as a debugger or a busy host does.
func (x *torture) stopAndContinue() {
	x.server.signal(x.T, syscall.SIGSTOP)
	x.pause(2 * time.Second)
	x.server.signal(x.T, syscall.SIGCONT)
	x.traffic(10)
}

// secondServer: a folder in use is refused, and verify asks the one that uses
// it.
func (x *torture) secondServer() {
	second := x.program.serve(x.T, x.aside, nil)
	if second.await(x.T) {
		x.Fatal("two servers use one folder")
	}
	if r := second.end(x.T); r.code != exitRefused {
		x.Fatalf("a second server was not refused: %s", r)
	}
	x.program.verify(x.Context(), x.T)
}

// removeIntake: claims that are gone are rebuilt from the stored events.
func (x *torture) removeIntake() {
	x.server.drain(x.T)
	x.remove(filepath.Join(x.program.data, "intake"))
	x.refused(x.program)
	if r := x.program.repair(x.Context(), x.T); r.Lost != 0 {
		x.Fatalf("a drained folder lost something: %+v", r)
	}
	x.program.verify(x.Context(), x.T)
	x.start()
}

// removeMark: nobody knows any more what was acknowledged.
func (x *torture) removeMark() {
	if x.rand.IntN(2) == 0 {
		x.server.drain(x.T)
	} else {
		x.server.kill(x.T)
	}
	mark := filepath.Join(x.program.data, "ACKNOWLEDGED")
	x.rename(mark, mark+".away")
	x.refused(x.program)
	x.rename(mark+".away", mark)
	x.start()
}

func (x *torture) rename(from, to string) {
	x.Helper()
	if err := os.Rename(from, to); err != nil {
		x.Fatal(err)
	}
}

// olderIntake: claims of another day beside the events of today.
func (x *torture) olderIntake() { x.older("intake") }

// olderEvents: events of another day beside the claims of today.
func (x *torture) olderEvents() { x.older("events") }

// older puts an older copy of a part beside the rest.
func (x *torture) older(part string) {
	x.server.drain(x.T)
	path := filepath.Join(x.program.data, part)
	older, newer := filepath.Join(x.dir, part+".older"), filepath.Join(x.dir, part+".newer")
	x.copyFolder(path, older)
	x.start()
	x.traffic(20)
	x.server.drain(x.T)
	x.rename(path, newer)
	x.rename(older, path)
	x.refused(x.program)
	x.remove(path)
	x.rename(newer, path)
	x.start()
}
