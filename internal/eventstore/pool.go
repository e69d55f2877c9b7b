package eventstore

import (
	"context"
	"sync"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
)

// pool hands out connections for reading, at most size at a time.
type pool struct {
	db    *duck.DB
	slots chan struct{}

	mu     sync.Mutex
	idle   []*duck.Conn
	closed bool
	users  sync.WaitGroup
	// shift are those who took a connection since the last turnOver, held says
	// to which shift the holder of a connection belongs.
	shift *sync.WaitGroup
	held  map[*duck.Conn]*sync.WaitGroup
}

func newPool(db *duck.DB, size int) *pool {
	return &pool{db: db, slots: make(chan struct{}, size), shift: &sync.WaitGroup{}, held: map[*duck.Conn]*sync.WaitGroup{}}
}

// acquire waits for a free slot. It returns the context's cause when that ends
// first, and ErrClosed after close. The caller must release the connection.
func (p *pool) acquire(ctx context.Context) (*duck.Conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := p.connect()
	if err != nil {
		<-p.slots
	}
	return conn, err
}

// extra returns a connection that counts as no slot, for work that holds one
// for long. The caller must release it with discard.
func (p *pool) extra() (*duck.Conn, error) { return p.connect() }

func (p *pool) connect() (*duck.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if n := len(p.idle); n > 0 {
		conn := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.hold(conn)
		return conn, nil
	}
	conn, err := p.db.Connect()
	if err != nil {
		return nil, err
	}
	p.hold(conn)
	return conn, nil
}

// hold notes that a connection is in use. mu is held.
func (p *pool) hold(conn *duck.Conn) {
	p.users.Add(1)
	p.shift.Add(1)
	p.held[conn] = p.shift
}

// letGo notes that a connection is not in use any more. mu is held.
func (p *pool) letGo(conn *duck.Conn) {
	p.held[conn].Done()
	delete(p.held, conn)
	p.users.Done()
}

// turnOver waits until everybody who holds a connection now has given it back;
// others may take one meanwhile. It returns the context's cause when that ends
// first.
func (p *pool) turnOver(ctx context.Context) error {
	p.mu.Lock()
	leaving := p.shift
	p.shift = &sync.WaitGroup{}
	p.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		leaving.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release gives a connection back; one that is not clean is closed.
func (p *pool) release(conn *duck.Conn, clean bool) {
	if !clean {
		conn.Close()
	}
	p.mu.Lock()
	if clean {
		p.idle = append(p.idle, conn)
	}
	p.letGo(conn)
	p.mu.Unlock()
	<-p.slots
}

// discard closes a connection that came from extra.
func (p *pool) discard(conn *duck.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letGo(conn)
}

// close refuses new users, waits for the present ones and closes everything.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.users.Wait()
	for _, conn := range p.idle {
		conn.Close()
	}
	p.idle = nil
}
