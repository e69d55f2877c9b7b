package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// labProxyCommand runs a fault proxy.
type labProxyCommand struct {
	Upstream string   `name:"upstream" env:"-" required:"" placeholder:"URL" help:"The server: an http or https URL."`
	Listen   string   `name:"listen" env:"-" default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Where to listen. Default: a free port of 127.0.0.1."`
	Seed     uint64   `name:"seed" env:"-" placeholder:"N" help:"Decides which requests meet which fault; printed. Default: random."`
	Faults   string   `name:"faults" env:"-" default:"drop-request=0.05,drop-answer=0.05,reset=0.02,delay=0.1:500ms,duplicate=0.05,reorder=0.02,429=0.02:2s,500=0.02,503=0.02,truncate=0.02" placeholder:"FAULTS" help:"name=probability[:duration] with commas between. Default: ${default}."`
	Match    []string `name:"match" env:"-" sep:"none" placeholder:"PATTERN" help:"Only requests like this meet faults, such as 'POST /v1/*'; may be given several times. Default: all."`
	Log      string   `name:"log" env:"-" placeholder:"FILE" help:"Write the fate of each request, one JSON object a line."`
	Replay   string   `name:"replay" env:"-" placeholder:"FILE" help:"Take the fates from a log instead of seed and faults."`
	KeepHost bool     `name:"keep-host" env:"-" help:"Pass the Host header on as the client sent it."`
	JSON     bool     `name:"json" env:"-" help:"Print address and summary as JSON, one object a line."`
}

// Help is shown by lab proxy --help.
func (*labProxyCommand) Help() string {
	return `Passes HTTP requests to a server and, by a seed, lets some of them meet a fault:

  drop-request   the connection is reset before the server is asked
  drop-answer    the connection is reset after the server has answered
  reset          the connection is reset in the middle of the answer
  truncate       the answer ends in the middle
  duplicate      the server is asked twice, one after the other or at once
  reorder        the request waits until a later one has passed, 2 s at most
  429            429 with Retry-After, 1 s; the server is not asked
  500, 503       an error of the proxy's; before every second the server was asked
  delay          on top of all: the request, or its answer, comes late, 1 s at most

What a request meets depends on the seed, its method, path and body, and on how
often it came before. With --replay the log of another run decides: the very same
request meets the same fate, another one that of the first request to its path that
is left in the log, and all after the log's end pass.

The first line of standard output is the address. Ends on ctrl-C or SIGTERM with a
table of what was done.

Exit codes: 0 ended by a signal, 1 failure, 2 wrong usage.`
}

// Run serves until ctx is done.
func (c *labProxyCommand) Run(ctx context.Context, std streams) error {
	options, err := c.options()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	log, err := openFateLog(c.Log)
	if err != nil {
		return err
	}
	options.OnFate = log.write
	p, err := faultproxy.Start(options)
	if err != nil {
		return errors.Join(err, log.close())
	}
	err = c.begin(std.stdout, p.URL(), options.Seed)
	if err == nil {
		<-ctx.Done()
	}
	if err = errors.Join(err, p.Close(), log.close()); err != nil {
		return err
	}
	return c.end(std.stdout, p.Counts())
}

// options reads the flags.
func (c *labProxyCommand) options() (o faultproxy.Options, err error) {
	o = faultproxy.Options{Seed: c.Seed, Upstream: c.Upstream, UpstreamHost: !c.KeepHost, Listen: c.Listen}
	if !strings.Contains(o.Upstream, "://") {
		return o, errors.New("--upstream is not an address like http://127.0.0.1:8080")
	}
	if o.Seed == 0 {
		o.Seed = randomSeed()
	}
	if o.Faults, err = faultproxy.ParseFaults(c.Faults); err != nil {
		return o, fmt.Errorf("--faults: %w", err)
	}
	if len(c.Match) > 0 {
		if o.Match, err = faultproxy.ParseMatch(c.Match); err != nil {
			return o, fmt.Errorf("--match: %w", err)
		}
	}
	if c.Replay == "" {
		return o, nil
	}
	f, err := os.Open(c.Replay)
	if err != nil {
		return o, fmt.Errorf("--replay: %w", err)
	}
	if o.Replay, err = faultproxy.ReadReplay(f); err != nil {
		err = fmt.Errorf("--replay: %w", err)
	}
	return o, errors.Join(err, f.Close())
}

// begin prints where the proxy is, before anything else.
func (c *labProxyCommand) begin(w io.Writer, address string, seed uint64) error {
	var err error
	if c.JSON {
		err = json.NewEncoder(w).Encode(map[string]any{"url": address, "seed": seed, "upstream": c.Upstream})
	} else {
		_, err = fmt.Fprintf(w, "%s\nseed %d, upstream %s\n", address, seed, c.Upstream)
	}
	return err
}

// end prints what was done.
func (c *labProxyCommand) end(w io.Writer, n faultproxy.Counts) error {
	rows := []struct {
		name string
		n    int64
	}{
		{"requests", n.Requests},
		{"deliveries", n.Deliveries},
		{"passed", n.Passed},
		{"drop-request", n.DropRequest},
		{"drop-answer", n.DropAnswer},
		{"reset", n.Reset},
		{"truncate", n.Truncate},
		{"duplicate", n.Duplicate},
		{"reorder", n.Reorder},
		{"429", n.TooMany},
		{"500", n.ServerError},
		{"503", n.Unavailable},
		{"delay", n.Delay},
		{"unreachable", n.Unreachable},
		{"refused", n.Refused},
	}
	if c.JSON {
		all := map[string]int64{}
		for _, row := range rows {
			all[row.name] = row.n
		}
		return json.NewEncoder(w).Encode(all)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintf(t, "%s\t%d\n", row.name, row.n); err != nil {
			return err
		}
	}
	return t.Flush()
}

// fateLog writes entries to a file, or nowhere. The first error is kept for
// close.
type fateLog struct {
	mu   sync.Mutex
	file *os.File
	err  error
}

func openFateLog(name string) (*fateLog, error) {
	if name == "" {
		return &fateLog{}, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	return &fateLog{file: f}, nil
}

// write appends an entry at once, so that nothing is missing if the proxy is
// killed.
func (l *fateLog) write(e faultproxy.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if l.err == nil {
		l.err = err
	}
}

func (l *fateLog) close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.err, l.file.Close())
}
