package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// maxBody bounds what is held of a request, in bytes.
const maxBody = 64 << 20

// exchange is one request on its way through the proxy.
type exchange struct {
	proxy   *Proxy
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	arrival arrival
	fate    fate
	// entry is what the log will say.
	entry *Entry
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	p.running.RLock()
	defer p.running.RUnlock()
	if r.Header.Get("Upgrade") != "" {
		p.count(func(c *Counts) { c.Refused++ })
		http.Error(w, "the proxy passes no upgrades", http.StatusNotImplemented)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			p.count(func(c *Counts) { c.Refused++ })
			http.Error(w, "the body is too large for the proxy", http.StatusRequestEntityTooLarge)
			return
		}
		Reset(w)
		return
	}
	x := &exchange{proxy: p, w: w, r: r, body: body}
	x.arrival, x.fate = p.draw(r, body)
	x.entry = newEntry(r, x.arrival, x.fate)
	if p.options.OnFate != nil {
		defer func() { p.options.OnFate(*x.entry) }()
	}
	defer p.overtake(x.arrival.n)
	x.run()
}

// run lets a request meet its fate.
func (x *exchange) run() {
	p := x.proxy
	if x.fate.before+x.fate.after > 0 {
		p.count(func(c *Counts) { c.Delay++ })
	}
	if !Pause(x.r.Context(), x.fate.before) {
		return
	}
	if x.fate.fault == reorder && !p.hold(x) {
		return
	}
	switch x.fate.fault {
	case dropRequest:
		p.count(func(c *Counts) { c.DropRequest++ })
		Reset(x.w)
	case tooMany:
		p.count(func(c *Counts) { c.TooMany++ })
		x.w.Header().Set("Retry-After", strconv.Itoa(int(x.fate.retryAfter/time.Second)))
		x.answer("the proxy has seen too many requests", http.StatusTooManyRequests)
	case serverError:
		p.count(func(c *Counts) { c.ServerError++ })
		x.makeUp(http.StatusInternalServerError)
	case unavailable:
		p.count(func(c *Counts) { c.Unavailable++ })
		x.makeUp(http.StatusServiceUnavailable)
	case none, dropAnswer, truncate, duplicate, cutWithin, reorder:
		x.pass()
	}
}

// answer writes an answer of the proxy's own.
func (x *exchange) answer(text string, status int) {
	x.entry.Status = status
	http.Error(x.w, text, status)
}

// makeUp answers in the server's place, with or without having asked it.
func (x *exchange) makeUp(status int) {
	if x.fate.coin {
		a, err := x.deliver()
		if err == nil {
			err = a.discard()
		}
		if err != nil {
			x.unreachable()
			return
		}
	}
	x.answer("the proxy has failed", status)
}

// pass asks the server and returns its answer, or a part of it, or nothing.
func (x *exchange) pass() {
	a, err := x.ask()
	if err != nil {
		x.unreachable()
		return
	}
	x.proxy.overtake(x.arrival.n)
	if !Pause(x.r.Context(), x.fate.after) {
		a.close()
		return
	}
	x.entry.Status = a.status
	switch x.fate.fault {
	case dropAnswer:
		x.proxy.count(func(c *Counts) { c.DropAnswer++ })
		a.close()
		Reset(x.w)
	case truncate:
		x.proxy.count(func(c *Counts) { c.Truncate++ })
		a.writeHalf(x.w)
		panic(http.ErrAbortHandler)
	case cutWithin:
		x.proxy.count(func(c *Counts) { c.Reset++ })
		a.writeHalf(x.w)
		Reset(x.w)
	case duplicate:
		x.proxy.count(func(c *Counts) { c.Duplicate++ })
		a.write(x.w)
	case reorder:
		x.proxy.count(func(c *Counts) { c.Reorder++ })
		a.write(x.w)
	default:
		x.proxy.count(func(c *Counts) { c.Passed++ })
		a.write(x.w)
	}
}

func (x *exchange) unreachable() {
	x.entry.Unreachable = true
	x.proxy.count(func(c *Counts) { c.Unreachable++ })
	Reset(x.w)
}

// Reset ends the client's connection so that it sees "connection reset".
func Reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetLinger(0)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return // it is gone already, which is what was wanted
	}
}

// Pause waits, and reports false if the client left meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
