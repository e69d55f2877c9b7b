// Package faultproxy owns a reverse proxy that breaks the network between a
// client and a server on purpose: requests and answers get lost, late,
// doubled, cut short and out of order, and the proxy answers in the server's
// place. It is for trying clients and servers, not for production, and never
// alters a request or an answer that it lets pass whole, but for the headers
// that are about one connection only.
//
// What happens to a request depends on the seed, the method, the path, the
// body and how often that very request came before, and on nothing else. So a
// client that sends the same requests meets the same faults, however its
// requests interleave. A log of fates ([Entry]) can be replayed.
//
// Bodies of requests are held, up to 64 MiB; so are answers of up to 1 MiB.
// Larger answers, and streams of events, pass as they come. An Upgrade is
// refused.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Faults are the probabilities, from 0 to 1, of what may befall a request. At
// most one of them does; a delay may come on top. Their sum, without Delay,
// must not exceed 1.
type Faults struct {
	// DropRequest resets the connection before the server is asked.
	DropRequest float64
	// DropAnswer resets the connection after the server has answered.
	DropAnswer float64
	// Truncate delivers the head of the answer and half its body.
	Truncate float64
	// Duplicate delivers the request to the server twice, one after the other
	// or both at once, and returns one of the two answers.
	Duplicate float64
	// TooMany answers 429 with Retry-After, without asking the server.
	TooMany float64
	// ServerError and Unavailable answer 500 and 503 without an envelope. The
	// server was asked before every second one, and its answer thrown away.
	ServerError float64
	Unavailable float64
	// Reset delivers the head of the answer and half its body, and resets the
	// connection: buffers on the way may be lost.
	Reset float64
	// Reorder holds the request back until a later one has been delivered, for
	// up to MaxReorder; 0 means DefaultMaxReorder.
	Reorder    float64
	MaxReorder time.Duration
	// Delay holds the request up before the server is asked, or the answer
	// after, for up to MaxDelay.
	Delay    float64
	MaxDelay time.Duration
	// RetryAfter is the header of a 429, rounded down to whole seconds.
	RetryAfter time.Duration
}

// DefaultMaxReorder is how long a request waits for a later one.
const DefaultMaxReorder = 2 * time.Second

func (f Faults) validate() error {
	sum := 0.0
	for _, s := range f.shares() {
		if s.p < 0 {
			return errors.New("a probability is negative")
		}
		sum += s.p
	}
	if sum > 1+1e-9 || f.Delay < 0 || f.Delay > 1 {
		return errors.New("the probabilities exceed 1")
	}
	return nil
}

// Counts say what the proxy did.
type Counts struct {
	// Requests came in; Deliveries went to the server, doubled ones twice.
	Requests, Deliveries int64
	// Passed were let through whole.
	Passed int64
	// The faults, as named in Faults.
	DropRequest, DropAnswer, Truncate, Duplicate, TooMany, ServerError, Unavailable, Reset, Reorder, Delay int64
	// Unreachable requests met no server, or one that broke off; the client's
	// connection was reset.
	Unreachable int64
	// Refused were Upgrades and bodies that are too large.
	Refused int64
}

// Options are the settings of a proxy.
type Options struct {
	Seed   uint64
	Faults Faults
	// Upstream is the server: host:port, or a URL of http or https whose path
	// is put before every request's.
	Upstream string
	// UpstreamHost has requests carry the upstream's own Host instead of the
	// one that the client sent.
	UpstreamHost bool
	// Listen is the address to listen on; "" is a free port of the loopback
	// interface.
	Listen string
	// Match, if set, says which requests may meet a fault; all others pass.
	Match func(*http.Request) bool
	// Replay, if set, decides fates in place of seed and faults.
	Replay *Replay
	// OnFate, if set, is called when a request has met its fate, from several
	// goroutines at once.
	OnFate func(Entry)
	// OnDeliver, if set, is called before each delivery to the server, from
	// several goroutines at once. It must not change the request.
	OnDeliver func(*http.Request)
}

// Proxy is a running proxy. Its methods may be called at any time.
type Proxy struct {
	options   Options
	listener  net.Listener
	server    *http.Server
	transport *http.Transport
	started   time.Time
	served    chan error
	// running is held for reading by every request being served.
	running sync.RWMutex

	mu       sync.Mutex
	faults   Faults
	upstream *url.URL
	counts   Counts
	// arrived numbers requests; held are those that wait for a later one.
	arrived uint64
	held    map[chan struct{}]uint64
	// seen counts how often each request came, by its hash.
	seen map[uint64]uint64
}

// Start listens and serves until Close.
func Start(o Options) (*Proxy, error) {
	if err := o.Faults.validate(); err != nil {
		return nil, fmt.Errorf("starting the fault proxy: %w", err)
	}
	upstream, err := parseUpstream(o.Upstream)
	if err != nil {
		return nil, fmt.Errorf("starting the fault proxy: %w", err)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("starting the fault proxy: %w", err)
	}
	p := &Proxy{
		listener:  listener,
		transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: time.Minute},
		options:   o,
		started:   time.Now(),
		served:    make(chan error, 1),
		faults:    o.Faults,
		upstream:  upstream,
		held:      map[chan struct{}]uint64{},
		seen:      map[uint64]uint64{},
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// URL is the address clients send to, without a slash at its end.
func (p *Proxy) URL() string {
	u := url.URL{Scheme: "http", Host: p.listener.Addr().String()}
	return u.String()
}

// parseUpstream reads Options.Upstream. No address at all is one that nobody
// listens on.
func parseUpstream(upstream string) (*url.URL, error) {
	if !strings.Contains(upstream, "://") {
		return &url.URL{Scheme: "http", Host: upstream}, nil
	}
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("the upstream is not an address like https://events.example.com")
	}
	return u, nil
}

// SetUpstream names another server, as host:port, for requests that have not
// reached the old one yet.
func (p *Proxy) SetUpstream(address string) {
	p.mu.Lock()
	p.upstream = &url.URL{Scheme: "http", Host: address}
	p.mu.Unlock()
	p.transport.CloseIdleConnections()
}

// SetFaults changes the probabilities for requests to come.
func (p *Proxy) SetFaults(f Faults) error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("setting faults: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	return nil
}

// Counts returns what was done so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Close ends all connections and waits until nothing more reaches the server.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.running.Lock()
	defer p.running.Unlock()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	p.transport.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("closing the fault proxy: %w", err)
	}
	return nil
}

func (p *Proxy) count(add func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.counts)
}
