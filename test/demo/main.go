// Command demo shows what ActionPulse promises, with the real binary and the
// events of a real shop: they are sent through a network that loses, doubles
// and breaks requests, orders are charged and letters are written by a flow at
// the same time, the server is killed twice with SIGKILL, and at the end
// everything is sent once more. Then the server is asked what it has, and that
// is compared with what the file says: nothing is lost, nothing is done twice.
//
// What the clients do is ordinary code with the Go SDK: they know of no kill
// and no fault. The same seed brings the same faults, and kills at the same
// places.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// passes is how often the shop's work is done: the second is the pipeline that
// is run again.
const passes = 2

// options are the flags.
type options struct {
	binary, file string
	// lines is how many of the file are taken; 0 for all.
	lines int
	seed  uint64
	// progress is where a line that is written over and over goes; nil for
	// nowhere.
	progress io.Writer
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/actionpulse", "the binary")
	flag.StringVar(&o.file, "file", "examples/shop/ecom.csv.gz", "the shop's events")
	flag.IntVar(&o.lines, "events", 0, "how many of them; 0 for all")
	flag.Uint64Var(&o.seed, "seed", 1, "draws the faults and the moments of the kills")
	flag.Parse()
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		o.progress = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is a run.
type demo struct {
	options
	screen  *screen
	shop    *shop
	server  *server
	network *network
	// kills are the moments at which the server is killed; due hears of them.
	kills [2]moment
	due   chan moment
	// killed counts the kills.
	killed int
}

// moment is the arrival of a request of a kind at the server.
type moment struct {
	kind    kind
	request int
}

// run does the demo and writes what there is to see. Its error says what failed,
// or that the server does not have what it should.
func run(ctx context.Context, o options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "actionpulse-demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	d := &demo{options: o, screen: newScreen(out, o.progress), due: make(chan moment, len(demo{}.kills))}
	if d.shop, err = readShop(o.file, o.lines); err != nil {
		return err
	}
	if d.shop.orders < 3 {
		return errors.New("there are too few orders to kill the server on the way: take more -events")
	}
	d.draw()
	if err := d.open(ctx, dir); err != nil {
		return err
	}
	if err = d.play(ctx, dir); err == nil {
		err = d.judge(ctx)
	} else {
		err = errors.Join(err, d.server.kill())
	}
	d.network.close()
	if err == nil {
		err = os.RemoveAll(dir)
	} else {
		err = fmt.Errorf("%w\nThe data folder and the server's log are in %s", err, dir)
	}
	return err
}

// draw decides when the server is killed: while events are being received, and
// later while orders are being paid.
func (d *demo) draw() {
	random := rand.New(rand.NewPCG(d.seed, 0))
	between := func(from, to float64, of int) int { return max(1, int((from+random.Float64()*(to-from))*float64(of))) }
	d.kills = [2]moment{
		{events, between(0.3, 0.5, len(d.shop.events)/batchSize)},
		{charges, between(0.35, 0.5, d.shop.orders)},
	}
}

// open makes and starts the server, and the network before it.
func (d *demo) open(ctx context.Context, dir string) (err error) {
	if d.server, err = newServer(ctx, d.binary, dir); err != nil {
		return err
	}
	if err := publish(ctx, "http://"+d.server.address, d.server.keys); err != nil {
		return errors.Join(err, d.server.kill())
	}
	d.network, err = newNetwork(d.server.address, d.seed, func(k kind, n int) {
		for _, m := range d.kills {
			if m == (moment{k, n}) {
				d.due <- m
			}
		}
	})
	if err != nil {
		return errors.Join(err, d.server.kill())
	}
	d.screen.begin(d)
	return nil
}

// play has the shop's work done, once and once more.
func (d *demo) play(ctx context.Context, dir string) error {
	transport := d.network.client()
	for pass := range passes {
		if pass > 0 {
			d.screen.say("everything is sent once more, as by a pipeline that is run again")
		}
		s := &sender{shop: d.shop, server: d.network.proxy.URL(), keys: d.server.keys, network: transport}
		if err := d.watch(ctx, s, filepath.Join(dir, fmt.Sprintf("outbox-%d", pass))); err != nil {
			return err
		}
		d.screen.say("all is acknowledged: %s events and %s orders", thousands(s.events.Load()), thousands(s.orders.Load()))
	}
	return nil
}

// watch runs a sender, and kills the server when it is time.
func (d *demo) watch(ctx context.Context, s *sender, outbox string) error {
	// The server outlives the sender.
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.run(sending, outbox) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case m := <-d.due:
			if err := d.kill(ctx, m, s); err != nil {
				cancel()
				return errors.Join(err, <-ended)
			}
		case <-tick.C:
			d.screen.progress(s)
		}
	}
}

// kill kills the server and starts it again.
func (d *demo) kill(ctx context.Context, m moment, s *sender) error {
	what := "events are being received"
	if m.kind == charges {
		what = "orders are being paid"
	}
	d.screen.say("kill -9 while %s (%s events and %d orders acknowledged)", what, thousands(s.events.Load()), s.orders.Load())
	gone, err := d.server.restart(ctx)
	if err != nil {
		return err
	}
	d.killed++
	d.screen.say("the server is back after %.1f s, on the folder as it was left", gone.Seconds())
	return nil
}

// judge asks the server what it has, stops it, has its folder checked, and says
// how it ended.
func (d *demo) judge(ctx context.Context) error {
	f, err := ask(ctx, d.server, d.shop)
	err = errors.Join(err, d.server.stop())
	if err != nil {
		return err
	}
	verified := d.server.verify(ctx)
	v := verdict{shop: d.shop, found: f, counts: d.network.read(), killed: d.killed, verified: verified}
	faults := v.faults()
	if err := d.screen.end(&v, d.network.proxy.Counts(), faults); err != nil {
		return err
	}
	return errors.Join(faults...)
}
