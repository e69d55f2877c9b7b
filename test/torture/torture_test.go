// Package torture_test runs the real binary through a network that breaks and
// kills it again and again, at random and between any two steps of the path of
// an event, and then compares what is stored with what was acknowledged. It
// signals only processes that it started.
//
// A run is described by its seed: what the senders send, what the proxy does to
// each request and the order of the rounds follow from it. How they interleave
// does not, so a repeat with the same seed is a similar run, not the same one.
package torture_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
)

var (
	seedFlag     = flag.Uint64("seed", 0, "seed of the run; 0 takes one from the clock")
	durationFlag = flag.Duration("duration", 0, "how long to go on with random rounds after one of each kind")
	onlyFlag     = flag.String("only", "", "run only rounds whose name holds this")
)

// torture is a run: one data folder, one server at a time, and senders that
// never stop.
type torture struct {
	*testing.T

	seed    uint64
	rand    *rand.Rand
	dir     string
	program program
	// address is where the senders' server listens, aside where servers
	// listen that no sender must reach.
	address, aside string
	creds          credentials
	model          *model
	deployments    *deployments
	// labour is nil where no keyed work is done.
	labour *labour
	proxy  *faultproxy.Proxy
	// client is the senders'; direct is one without a proxy.
	client, direct *client
	fleet          *fleet
	// probes makes the events of probe.
	probes *maker
	server *process
	began  time.Time
	rounds int
	// armed counts how often the server was killed at each point.
	armed map[string]int
}

// TestMain stops the database that the tests started, and removes the binary
// that they built.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
		code = 1
	}
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// TestTorture: whatever befalls network and server, every acknowledged event
// is stored exactly once, and nothing that was not sent; every key of a deploy
// has made one marker; and every key of a movement or an execution has done its
// work once, paid for once, without a call that was made twice.
func TestTorture(t *testing.T) {
	dir := workFolder(t)
	x := newTorture(t, dir, filepath.Join(dir, "data"))
	x.startProxy()
	x.start()
	x.startLabour()
	x.send(8, x.newDeployer(x.client, 0).work, x.newDeployer(x.client, 1).work, x.newDeployer(x.client, 2).work,
		x.newBuyer(x.client, 0).work, x.newBuyer(x.client, 1).work, x.newBuyer(x.client, 2).work, x.newBuyer(x.client, 3).work)
	x.each()
	x.finish()
}

// workFolder makes a folder that is kept if the test fails.
func workFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "actionpulse-torture-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kept: %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newTorture makes a data folder; what else is kept goes to dir.
func newTorture(t *testing.T, dir, data string) *torture {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (repeat with -seed %d)", seed, seed)
	x := &torture{
		T: t, seed: seed, rand: newRand(seed, 1<<32), dir: dir,
		program: program{path: buildBinary(t), data: data, log: filepath.Join(dir, "server.log")},
		model:   newModel(), deployments: &deployments{seed: seed}, began: time.Now(), armed: map[string]int{},
	}
	x.address, x.aside = freeAddresses(t)
	x.creds = x.program.init(x.Context(), t)
	x.client = newClient(x.model, "http://"+x.address, x.creds.secrets())
	x.client.direct = true
	x.direct = x.client
	x.probes = newMaker(x.model, seed, 1000, 1)
	return x
}

// send starts a number of senders, and others beside them.
func (x *torture) send(senders int, others ...func(context.Context, *fleet)) {
	x.fleet = x.client.start(x.Context(), x.seed, senders, others...)
	x.Cleanup(func() {
		x.fleet.cancel(nil)
		x.fleet.done.Wait()
	})
}

// startProxy puts the broken network between clients and server.
func (x *torture) startProxy() {
	proxy, err := faultproxy.Start(faultproxy.Options{
		Seed: x.seed, Upstream: x.address,
		Faults: faultproxy.Faults{
			DropRequest: 0.03, DropAnswer: 0.06, Truncate: 0.02, Duplicate: 0.06, TooMany: 0.01, ServerError: 0.03, Unavailable: 0.02,
			Delay: 0.1, MaxDelay: 200 * time.Millisecond,
		},
		OnDeliver: x.delivered,
	})
	if err != nil {
		x.Fatal(err)
	}
	x.proxy = proxy
	x.client = newClient(x.model, proxy.URL(), x.creds.secrets())
	x.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			x.Error(err)
		}
	})
}

// start starts the server and demands that it takes requests.
func (x *torture) start(flags ...string) {
	x.Helper()
	x.server = x.program.serve(x.T, x.address, append(x.moods(), flags...))
	if !x.server.await(x.T) {
		x.Fatalf("the server did not start: %s", x.server.end(x.T))
	}
}

// moods are settings that change how often and how much is written at once.
func (x *torture) moods() []string {
	return []string{
		fmt.Sprintf("--materializer.max_rows=%d", []int{50, 500, 20_000}[x.rand.IntN(3)]),
		fmt.Sprintf("--materializer.max_delay=%dms", []int{1, 20, 100, 500}[x.rand.IntN(4)]),
	}
}

// traffic waits until n more requests were acknowledged.
func (x *torture) traffic(n int) {
	x.Helper()
	x.await(fmt.Sprintf("%d acknowledgements", n), func(before, now counts) bool { return now.requests >= before.requests+n })
}

// await waits until the counts have changed as they should, while the server
// runs.
func (x *torture) await(what string, reached func(before, now counts) bool) {
	x.Helper()
	deadline := time.After(patience)
	before, _ := x.model.progress()
	for {
		now, changed := x.model.progress()
		if reached(before, now) {
			return
		}
		select {
		case <-changed:
		case err := <-x.fleet.fault:
			x.Fatal(err)
		case <-x.server.exited:
			x.Fatalf("the server ended: %s", x.server.end(x.T))
		case <-deadline:
			x.Fatalf("no %s in %s: %+v, then %+v", what, patience, before, now)
		}
	}
}

// pause lets a random time pass while the senders work.
func (x *torture) pause(most time.Duration) {
	x.Helper()
	select {
	case <-time.After(time.Duration(x.rand.Int64N(int64(most)))):
	case err := <-x.fleet.fault:
		x.Fatal(err)
	}
}

// finish lets the senders end what they are at and compares what is stored
// with what was acknowledged.
func (x *torture) finish() {
	if x.proxy != nil {
		if err := x.proxy.SetFaults(faultproxy.Faults{}); err != nil {
			x.Fatal(err)
		}
	}
	x.fleet.finish(patience)
	select {
	case err := <-x.fleet.fault:
		x.Fatal(err)
	default:
	}
	x.server.drain(x.T)
	x.complete(x.program)
	x.start()
	x.repeatAll()
	x.completeMarkers()
	x.completeWork()
	x.server.drain(x.T)
	x.complete(x.program)
	if r := x.program.verify(x.Context(), x.T); r.OpenHolds != 0 {
		x.Errorf("%d holds are left open", r.OpenHolds)
	}
	c, _ := x.model.progress()
	x.Logf("seed %d: %d rounds in %s, %+v, killed at %v", x.seed, x.rounds, time.Since(x.began).Round(time.Second), c, x.armed)
	if x.proxy != nil {
		x.Logf("the proxy: %+v", x.proxy.Counts())
	}
}
