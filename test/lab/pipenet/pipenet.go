// Package pipenet is a network within the process: its connections are pipes,
// so that client and server can live in a bubble of testing/synctest, whose
// time is made up. A run of the lab then takes no time, and delays are exact.
package pipenet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// Network holds the listeners. The zero value is ready.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

type listener struct {
	address string
	accept  chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Listen opens the next address of the network.
func (n *Network) Listen() (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{address: fmt.Sprintf("lab-%d:80", len(n.listeners)), accept: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[l.address] = l
	return l, nil
}

var errRefused = errors.New("nobody listens")

// Transport returns one that dials within the network.
func (n *Network) Transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		n.mu.Lock()
		l := n.listeners[address]
		n.mu.Unlock()
		if l == nil {
			return nil, errRefused
		}
		near, far := net.Pipe()
		select {
		case l.accept <- far:
			return near, nil
		case <-l.closed:
			return nil, errRefused
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses what comes from now on.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is the address to dial.
func (l *listener) Addr() net.Addr { return address(l.address) }

type address string

// Network names the kind of network.
func (address) Network() string { return "pipe" }

// String is what to dial.
func (a address) String() string { return string(a) }
