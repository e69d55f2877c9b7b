// Package faultproxy owns a reverse proxy that breaks the network between a
// client and a server on purpose: requests and answers get lost, late,
// doubled and cut short, and the proxy answers in the server's place. It is
// for tests only and never alters a request or an answer that it lets pass
// whole.
//
// What happens to a request depends on the seed, the method, the path, the
// body and how often that very request came before, and on nothing else. So a
// client that sends the same requests meets the same faults, however its
// requests interleave.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Faults are the probabilities, from 0 to 1, of what may befall a request. At
// most one of the first seven does; a delay may come on top. Their sum must
// not exceed 1.
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
	// Delay holds the request up before the server is asked, or the answer
	// after, for up to MaxDelay.
	Delay    float64
	MaxDelay time.Duration
	// RetryAfter is the header of a 429, rounded down to whole seconds.
	RetryAfter time.Duration
}

func (f Faults) validate() error {
	sum := 0.0
	for _, p := range []float64{f.DropRequest, f.DropAnswer, f.Truncate, f.Duplicate, f.TooMany, f.ServerError, f.Unavailable} {
		if p < 0 {
			return errors.New("a probability is negative")
		}
		sum += p
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
	DropRequest, DropAnswer, Truncate, Duplicate, TooMany, ServerError, Unavailable, Delay int64
	// Unreachable requests met no server, or one that broke off; the client's
	// connection was reset.
	Unreachable int64
}

// Options are the settings of a proxy.
type Options struct {
	Seed   uint64
	Faults Faults
	// Upstream is the address of the server, host:port.
	Upstream string
	// OnDeliver, if set, is called before each delivery to the server, from
	// several goroutines at once. It must not change the request.
	OnDeliver func(*http.Request)
}

// Proxy is a running proxy. Its methods may be called at any time.
type Proxy struct {
	listener  net.Listener
	server    *http.Server
	transport *http.Transport
	seed      uint64
	onDeliver func(*http.Request)
	served    chan error
	// running is held for reading by every request being served.
	running sync.RWMutex

	mu       sync.Mutex
	faults   Faults
	upstream string
	counts   Counts
	// seen counts how often each request came, by its hash.
	seen map[uint64]uint64
}

// Start listens on a free port of the loopback interface and serves until
// Close.
func Start(o Options) (*Proxy, error) {
	if err := o.Faults.validate(); err != nil {
		return nil, fmt.Errorf("starting the fault proxy: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the fault proxy: %w", err)
	}
	p := &Proxy{
		listener:  listener,
		transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: time.Minute},
		seed:      o.Seed,
		onDeliver: o.OnDeliver,
		served:    make(chan error, 1),
		faults:    o.Faults,
		upstream:  o.Upstream,
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

// SetUpstream names another server, for requests that have not reached the
// old one yet.
func (p *Proxy) SetUpstream(address string) {
	p.mu.Lock()
	p.upstream = address
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
