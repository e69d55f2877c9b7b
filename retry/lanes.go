package retry

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxIdleLanes is how many narrow lanes that nobody uses are remembered.
const maxIdleLanes = 1024

// errNoTurn is why a request was not made, or not made again.
var errNoTurn = errors.New("requests with the same credential fail, and its turn did not come in time")

// Lanes keep the requests with one credential apart while they fail. As long as
// all goes well they do nothing. After a failure, which is no answer or one
// that says that the server cannot or will not serve now, the lane of that
// credential is narrow: one request at a time, in the order in which they came,
// each after the wait that the last failure calls for, until one gets an
// answer that is no failure. Then all that wait go at once. No lane rests for
// longer than the budget of the request that failed, whatever Retry-After says:
// a wrong one must not shut a program out.
//
// A request that was under way when the first one failed is not held back; if
// it fails too, its repeat joins the lane, and if it succeeds, the lane stays
// narrow: what was sent before a failure says nothing about what came after.
//
// A lane belongs to a host and a credential, which is the header Authorization
// or the parameter "key" of the URL. Of a credential only a hash is kept, and
// of a lane in which all is well nothing. Requests without a credential have no
// lane.
//
// The zero value is ready. Lanes may be shared by transports, and are safe for
// concurrent use.
type Lanes struct {
	mu     sync.Mutex
	narrow map[laneID]*lane
}

type laneID [sha256.Size]byte

// lane is one that is narrow. It has a queue only while it is taken.
type lane struct {
	taken bool
	// queue holds who waits. True says that the lane is theirs, false that it is
	// narrow no more.
	queue []chan bool
	// failures is how many requests in a row have failed in it, and until the
	// time before which none is made.
	failures int
	until    time.Time
}

// pass allows one attempt. It is given back by succeeded, failed or left; what
// is called after the first of them does nothing.
type pass struct {
	lanes *Lanes
	id    laneID
	// lane is the narrow lane that this pass has to itself, or nil.
	lane *lane
	// back is true if there is no lane, or the pass has been given back.
	back bool
}

// laneOf returns the lane of a request; false if it has no credential.
func laneOf(request *http.Request) (laneID, bool) {
	credential := request.Header.Get("Authorization")
	if request.URL == nil {
		return laneID{}, false // Base says so
	}
	if credential == "" {
		credential = request.URL.Query().Get("key")
	}
	if credential == "" {
		return laneID{}, false
	}
	return sha256.Sum256([]byte(request.URL.Scheme + "://" + request.URL.Host + "\n" + credential)), true
}

// enter waits for the lane of a request, for patience at most. It returns
// errNoTurn after that, and the cause of ctx if that ends first.
func (l *Lanes) enter(ctx context.Context, request *http.Request, patience time.Duration) (*pass, error) {
	id, ok := laneOf(request)
	if !ok {
		return &pass{back: true}, nil
	}
	at, turn := l.join(id)
	if turn == nil {
		return &pass{lanes: l, id: id, lane: at}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoTurn)
	defer cancel()
	select {
	case own := <-turn:
		if !own {
			at = nil
		}
		return &pass{lanes: l, id: id, lane: at}, nil
	case <-ctx.Done():
		l.withdraw(at, turn)
		return nil, context.Cause(ctx)
	}
}

// join returns the narrow lane, nil if it is not narrow, and what to wait for
// if it is taken; else it is the caller's.
func (l *Lanes) join(id laneID) (at *lane, turn chan bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = l.narrow[id]
	switch {
	case at == nil:
	case !at.taken:
		at.taken = true
	default:
		turn = make(chan bool, 1)
		at.queue = append(at.queue, turn)
	}
	return at, turn
}

// withdraw takes one who waits out of the queue. If its turn came at the same
// moment, it is the next one's.
func (l *Lanes) withdraw(at *lane, turn chan bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(at.queue, turn); i >= 0 {
		at.queue = slices.Delete(at.queue, i, i+1)
		return
	}
	if own := <-turn; own {
		at.handOn()
	}
}

// handOn gives the lane to the next in the queue.
func (at *lane) handOn() {
	if len(at.queue) == 0 {
		at.taken = false
		at.queue = nil
		return
	}
	next := at.queue[0]
	at.queue = at.queue[1:]
	next <- true
}

// until is the time before which the attempt must not be made; zero if there
// is none.
func (p *pass) until() time.Time {
	if p.lane == nil {
		return time.Time{}
	}
	p.lanes.mu.Lock()
	defer p.lanes.mu.Unlock()
	return p.lane.until
}

// release gives the pass back, and returns the narrow lane that it had, or nil.
func (p *pass) release() *lane {
	at := p.lane
	p.lane, p.back = nil, true
	return at
}

// succeeded says that the attempt got an answer that is no failure. That opens
// the lane, if the attempt was made in a narrow one.
func (p *pass) succeeded() {
	at := p.release()
	if at == nil {
		return
	}
	p.lanes.mu.Lock()
	defer p.lanes.mu.Unlock()
	delete(p.lanes.narrow, p.id)
	for _, turn := range at.queue {
		turn <- false
	}
	at.queue = nil
}

// left says that nothing is known of the attempt, or none was made.
func (p *pass) left() {
	at := p.release()
	if at == nil {
		return
	}
	p.lanes.mu.Lock()
	defer p.lanes.mu.Unlock()
	at.handOn()
}

// failed says that the attempt failed, which makes its lane narrow. rest is
// told how many in a row have failed in the lane, 1 for the first, and returns
// for how long, from now on, no request is to be made in it.
func (p *pass) failed(now time.Time, rest func(failures int) time.Duration) {
	if p.back {
		return
	}
	own := p.release()
	p.lanes.mu.Lock()
	defer p.lanes.mu.Unlock()
	at := own
	if at == nil {
		at = p.lanes.ensure(p.id, now)
	}
	if own != nil || at.failures == 0 {
		at.failures++
	}
	if until := now.Add(rest(at.failures)); until.After(at.until) {
		at.until = until
	}
	if own != nil {
		own.handOn()
	}
}

// ensure returns the narrow lane of a credential and makes it if there is none.
func (l *Lanes) ensure(id laneID, now time.Time) *lane {
	if at := l.narrow[id]; at != nil {
		return at
	}
	if l.narrow == nil {
		l.narrow = map[laneID]*lane{}
	}
	if len(l.narrow) >= maxIdleLanes {
		l.forget(now)
	}
	at := &lane{}
	l.narrow[id] = at
	return at
}

// forget drops the lanes that nobody uses and whose wait is over, or else the
// one whose wait ends first.
func (l *Lanes) forget(now time.Time) {
	var first laneID
	var until time.Time
	for id, at := range l.narrow {
		switch {
		case at.taken:
		case !at.until.After(now):
			delete(l.narrow, id)
		case until.IsZero() || at.until.Before(until):
			first, until = id, at.until
		}
	}
	if len(l.narrow) >= maxIdleLanes && !until.IsZero() {
		delete(l.narrow, first)
	}
}
