package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// maxHeld is up to what length, in bytes, an answer is held before the client
// sees any of it.
const maxHeld = 1 << 20

// delivered is an answer of the server: held whole, or a stream that is still
// coming.
type delivered struct {
	status int
	header http.Header
	body   []byte
	// stream is nil if body is all there is.
	stream io.ReadCloser
}

// ask delivers a request once or twice and returns the answer to show.
func (x *exchange) ask() (*delivered, error) {
	if x.fate.fault != duplicate {
		return x.deliver()
	}
	var answers [2]*delivered
	var errs [2]error
	var both sync.WaitGroup
	for i := range answers {
		both.Go(func() { answers[i], errs[i] = x.deliver() })
		if !x.fate.coin {
			both.Wait()
		}
	}
	both.Wait()
	shown, hidden := 0, 1
	if x.fate.second {
		shown, hidden = 1, 0
	}
	if errs[hidden] == nil {
		answers[hidden].close()
	}
	return answers[shown], errs[shown]
}

// deliver sends the request to the server. The client's leaving does not cut
// it short, unless the answer is a stream: on a real network it would be on
// its way already.
func (x *exchange) deliver() (*delivered, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	response, err := x.proxy.transport.RoundTrip(x.outgoing(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	removeHopByHop(response.Header)
	a := &delivered{status: response.StatusCode, header: response.Header}
	if streams(response) {
		stop := context.AfterFunc(x.r.Context(), cancel)
		a.stream = closing{response.Body, func() { stop(); cancel() }}
		return a, nil
	}
	a.body, err = io.ReadAll(response.Body)
	cancel()
	return a, errors.Join(err, response.Body.Close())
}

// outgoing is the request as the server gets it.
func (x *exchange) outgoing(ctx context.Context) *http.Request {
	p := x.proxy
	p.mu.Lock()
	p.counts.Deliveries++
	x.entry.Deliveries++
	upstream := p.upstream
	p.mu.Unlock()
	out := x.r.Clone(ctx)
	out.URL.Scheme, out.URL.Host = upstream.Scheme, upstream.Host
	if prefix := strings.TrimSuffix(upstream.Path, "/"); prefix != "" {
		out.URL.Path = prefix + out.URL.Path
		out.URL.RawPath = ""
	}
	if p.options.UpstreamHost {
		out.Host = upstream.Host
	}
	out.RequestURI = ""
	out.Body = http.NoBody
	if len(x.body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	out.ContentLength = int64(len(x.body))
	out.TransferEncoding = nil
	removeHopByHop(out.Header)
	if p.options.OnDeliver != nil {
		p.options.OnDeliver(out)
	}
	return out
}

// streams reports whether an answer is passed on as it comes: events, or more
// than is held.
func streams(r *http.Response) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream" || r.ContentLength > maxHeld || r.ContentLength < 0
}

// closing is a body with something to do when it is closed.
type closing struct {
	io.ReadCloser

	then func()
}

func (c closing) Close() error {
	c.then()
	return c.ReadCloser.Close()
}

// hopByHop are the headers that are about one connection only, beside those
// that Connection names.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func removeHopByHop(h http.Header) {
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// close lets go of an answer that nobody reads.
func (d *delivered) close() {
	if d.stream != nil && d.stream.Close() != nil {
		return // it has ended already
	}
}

// discard waits for the whole answer, or the beginning of a stream.
func (d *delivered) discard() error {
	if d.stream == nil {
		return nil
	}
	_, err := io.CopyN(io.Discard, d.stream, maxHeld)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	d.close()
	return err
}

func (d *delivered) writeHead(w http.ResponseWriter) {
	maps.Copy(w.Header(), d.header)
	w.WriteHeader(d.status)
}

func (d *delivered) write(w http.ResponseWriter) {
	defer d.close()
	d.writeHead(w)
	if d.stream == nil {
		say(w, d.body)
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := d.stream.Read(buffer)
		say(w, buffer[:n])
		if n > 0 {
			flush(w)
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			panic(http.ErrAbortHandler) // the server broke off; so does the proxy
		}
	}
}

// writeHalf writes the head as of a whole answer and half the body; of a
// stream, half of what comes first.
func (d *delivered) writeHalf(w http.ResponseWriter) {
	defer d.close()
	body := d.body
	if d.stream == nil {
		d.header.Set("Content-Length", strconv.Itoa(len(d.body)))
	} else {
		buffer := make([]byte, 32<<10)
		n, err := d.stream.Read(buffer)
		if err != nil && !errors.Is(err, io.EOF) {
			panic(http.ErrAbortHandler)
		}
		body = buffer[:n]
	}
	d.writeHead(w)
	say(w, body[:len(body)/2])
	flush(w)
}

// say writes to a client that may have left; then its connection goes too.
func say(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func flush(w http.ResponseWriter) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
}
