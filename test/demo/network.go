package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// faults are what befalls one request in three on its way.
var faults = faultproxy.Faults{
	DropRequest: 0.04, DropAnswer: 0.09, Truncate: 0.04, Duplicate: 0.08, ServerError: 0.03, Unavailable: 0.03, TooMany: 0.003,
	Delay: 0.05, MaxDelay: 40 * time.Millisecond, RetryAfter: time.Second,
}

// kind is what a request is about.
type kind uint8

const (
	events kind = iota
	topUps
	charges
	runs
	kinds // how many there are
)

// kindOf tells what a request is about by its path; false for what is not
// counted.
func kindOf(path string) (kind, bool) {
	switch {
	case path == "/v1/track":
		return events, true
	case path == "/v1/operations/execute":
		return runs, true
	case strings.HasSuffix(path, "/topup"):
		return topUps, true
	case strings.HasSuffix(path, "/charge"):
		return charges, true
	}
	return 0, false
}

// counted is what happened to units of a kind: events, or requests with a key.
type counted struct {
	// attempts were sent by clients, repeats included; suppressed were recognised
	// by the server as repeats; refused were turned down for good.
	attempts, suppressed, refused int64
}

// meter counts what is sent and what the server says to it.
type meter struct {
	mu     sync.Mutex
	counts [kinds]counted
	// arrived is called with the number of requests of a kind that have
	// arrived at the server, before it is asked.
	arrived func(k kind, requests int)
	reached [kinds]int
}

func (m *meter) add(k kind, change func(*counted)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.counts[k])
}

func (m *meter) read() [kinds]counted {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts
}

// sending is the transport of the clients: it counts attempts, whatever becomes
// of them.
type sending struct {
	*meter
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (s sending) RoundTrip(r *http.Request) (*http.Response, error) {
	if k, known := kindOf(r.URL.Path); known {
		units := int64(1)
		if k == events {
			units = s.items(r)
		}
		s.add(k, func(c *counted) { c.attempts += units })
	}
	return s.base.RoundTrip(r)
}

// items is how many events a request holds.
func (s sending) items(r *http.Request) int64 {
	if r.GetBody == nil {
		return 0
	}
	body, err := r.GetBody()
	if err != nil {
		return 0
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return 0
	}
	return int64(bytes.Count(content, []byte(`"event_id":`)))
}

// gate stands before the server, behind the broken network: it sees every
// answer, those too that the network then loses.
type gate struct {
	*meter
	forward httputil.ReverseProxy
}

func newGate(m *meter, upstream string) *gate {
	g := &gate{meter: m}
	g.forward = httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: upstream}) },
		ModifyResponse: g.look,
		// A server that is not there, or dies, cuts the connection.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
		Transport:    &http.Transport{MaxIdleConnsPerHost: 16},
	}
	return g
}

// ServeHTTP implements [http.Handler].
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if k, known := kindOf(r.URL.Path); known {
		g.mu.Lock()
		g.reached[k]++
		n := g.reached[k]
		g.mu.Unlock()
		g.arrived(k, n)
	}
	g.forward.ServeHTTP(w, r)
}

// look counts what the server says of repeats.
func (g *gate) look(r *http.Response) error {
	k, known := kindOf(r.Request.URL.Path)
	if !known {
		return nil
	}
	var repeats, refused int64
	switch {
	case r.StatusCode == http.StatusRequestTimeout, r.StatusCode == http.StatusTooManyRequests, r.StatusCode >= http.StatusInternalServerError:
		// It may be sent again.
	case r.StatusCode >= http.StatusBadRequest:
		refused = 1
	case k != events && r.Header.Get("Idempotency-Replayed") == "true":
		repeats = 1
	case k == events:
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		_ = r.Body.Close() // read to its end
		r.Body = io.NopCloser(bytes.NewReader(content))
		var answer struct {
			Duplicates int64
			Rejected   []json.RawMessage
		}
		if err := json.Unmarshal(content, &answer); err != nil {
			return err
		}
		repeats, refused = answer.Duplicates, int64(len(answer.Rejected))
	}
	g.add(k, func(c *counted) {
		c.suppressed += repeats
		c.refused += refused
	})
	return nil
}

// network is everything between clients and server.
type network struct {
	*meter
	proxy *faultproxy.Proxy
	gate  *http.Server
}

// newNetwork puts a network that breaks before a server. arrived is called as
// that of the meter.
func newNetwork(upstream string, seed uint64, arrived func(k kind, requests int)) (*network, error) {
	n := &network{meter: &meter{arrived: arrived}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n.gate = &http.Server{Handler: newGate(n.meter, upstream), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = n.gate.Serve(listener) }() // says that it was closed
	n.proxy, err = faultproxy.Start(faultproxy.Options{Seed: seed, Faults: faults, Upstream: listener.Addr().String()})
	return n, err
}

// client is the transport for clients.
func (n *network) client() http.RoundTripper {
	return sending{n.meter, &http.Transport{MaxIdleConnsPerHost: 16}}
}

// close takes the network down.
func (n *network) close() { _ = n.proxy.Close(); _ = n.gate.Close() }
