package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxBody bounds what is held of a request, in bytes.
const maxBody = 64 << 20

// delivered is an answer of the server, held whole.
type delivered struct {
	status int
	header http.Header
	body   []byte
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	p.running.RLock()
	defer p.running.RUnlock()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		reset(w)
		return
	}
	f := p.draw(r, body)
	if f.before+f.after > 0 {
		p.count(func(c *Counts) { c.Delay++ })
	}
	if !pause(r.Context(), f.before) {
		return
	}
	p.meet(w, r, body, f)
}

// meet lets a request meet its fate.
func (p *Proxy) meet(w http.ResponseWriter, r *http.Request, body []byte, f fate) {
	switch f.fault {
	case dropRequest:
		p.count(func(c *Counts) { c.DropRequest++ })
		reset(w)
	case tooMany:
		p.count(func(c *Counts) { c.TooMany++ })
		w.Header().Set("Retry-After", strconv.Itoa(int(f.retryAfter/time.Second)))
		http.Error(w, "the proxy has seen too many requests", http.StatusTooManyRequests)
	case serverError:
		p.count(func(c *Counts) { c.ServerError++ })
		p.makeUp(w, r, body, f, http.StatusInternalServerError)
	case unavailable:
		p.count(func(c *Counts) { c.Unavailable++ })
		p.makeUp(w, r, body, f, http.StatusServiceUnavailable)
	case none, dropAnswer, truncate, duplicate:
		p.pass(w, r, body, f)
	}
}

// makeUp answers in the server's place, with or without having asked it.
func (p *Proxy) makeUp(w http.ResponseWriter, r *http.Request, body []byte, f fate, status int) {
	if f.coin {
		if _, err := p.deliver(r, body); err != nil {
			p.unreachable(w)
			return
		}
	}
	http.Error(w, "the proxy has failed", status)
}

// pass asks the server and returns its answer, or a part of it, or nothing.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, body []byte, f fate) {
	answer, err := p.ask(r, body, f)
	if err != nil {
		p.unreachable(w)
		return
	}
	if !pause(r.Context(), f.after) {
		return
	}
	switch f.fault {
	case dropAnswer:
		p.count(func(c *Counts) { c.DropAnswer++ })
		reset(w)
	case truncate:
		p.count(func(c *Counts) { c.Truncate++ })
		answer.writeHalf(w)
	case duplicate:
		p.count(func(c *Counts) { c.Duplicate++ })
		answer.write(w)
	default:
		p.count(func(c *Counts) { c.Passed++ })
		answer.write(w)
	}
}

func (p *Proxy) unreachable(w http.ResponseWriter) {
	p.count(func(c *Counts) { c.Unreachable++ })
	reset(w)
}

// ask delivers a request once or twice and returns the answer to show.
func (p *Proxy) ask(r *http.Request, body []byte, f fate) (delivered, error) {
	if f.fault != duplicate {
		return p.deliver(r, body)
	}
	var answers [2]delivered
	var errs [2]error
	var both sync.WaitGroup
	for i := range answers {
		both.Go(func() { answers[i], errs[i] = p.deliver(r, body) })
		if !f.coin {
			both.Wait()
		}
	}
	both.Wait()
	shown := 0
	if f.second {
		shown = 1
	}
	return answers[shown], errs[shown]
}

// deliver sends the request to the server. The client's leaving does not cut
// it short: on a real network it would be on its way already.
func (p *Proxy) deliver(r *http.Request, body []byte) (delivered, error) {
	p.mu.Lock()
	p.counts.Deliveries++
	upstream := p.upstream
	p.mu.Unlock()
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL.Scheme, out.URL.Host = "http", upstream
	out.RequestURI = ""
	out.Body = http.NoBody
	if len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	out.ContentLength = int64(len(body))
	out.TransferEncoding = nil
	removeHopByHop(out.Header)
	if p.onDeliver != nil {
		p.onDeliver(out)
	}
	response, err := p.transport.RoundTrip(out)
	if err != nil {
		return delivered{}, err
	}
	text, err := io.ReadAll(response.Body)
	if e := response.Body.Close(); err == nil {
		err = e
	}
	removeHopByHop(response.Header)
	return delivered{status: response.StatusCode, header: response.Header, body: text}, err
}

// removeHopByHop drops the headers that are about one connection only.
func removeHopByHop(h http.Header) {
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
}

func (d delivered) writeHead(w http.ResponseWriter) {
	maps.Copy(w.Header(), d.header)
	w.WriteHeader(d.status)
}

func (d delivered) write(w http.ResponseWriter) {
	d.writeHead(w)
	if _, err := w.Write(d.body); err != nil {
		panic(http.ErrAbortHandler) // the client has left; so does its connection
	}
}

// writeHalf writes the head as of a whole answer, half the body, and ends the
// connection.
func (d delivered) writeHalf(w http.ResponseWriter) {
	d.header.Set("Content-Length", strconv.Itoa(len(d.body)))
	d.writeHead(w)
	if _, err := w.Write(d.body[:len(d.body)/2]); err != nil {
		panic(http.ErrAbortHandler)
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
	panic(http.ErrAbortHandler)
}

// reset ends the client's connection so that it sees "connection reset".
func reset(w http.ResponseWriter) {
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

// pause waits, and reports false if the client left meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
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
