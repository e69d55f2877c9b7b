package httpapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// codedSlack is how much larger than its limit a body may be in transit when
// it is coded: a coding makes incompressible bytes a little longer.
const codedSlack = 64 << 10

// limitBodyTime gives the client until now to send its body. Connections know
// no clock but the machine's.
func (s *service) limitBodyTime(x *exchange) error {
	if !x.unread {
		return nil
	}
	if err := http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(s.BodyTimeout)); err != nil {
		return fault.Wrap(api.CodeInternal, err, "the server failed")
	}
	return nil
}

// readBody reads the body to its end and decodes it into x.body. It refuses
// with unsupported_media_type, payload_too_large, request_timeout, unavailable
// and invalid_json.
func (s *service) readBody(x *exchange, b body) error {
	if err := checkMedia(x.r.Header, b); err != nil {
		return err
	}
	coding, err := contentEncoding(x.r.Header)
	if err != nil {
		return err
	}
	limit := b.limit
	if coding != identity {
		limit += codedSlack
	}
	if x.r.ContentLength > int64(limit) {
		return bodyFault(x, errTooLarge, b)
	}
	x.body = s.bodies.get()
	if err := x.body.fill(x.r.Body, limit, x.r.ContentLength); err != nil {
		return bodyFault(x, err, b)
	}
	if err := endBodyTime(x); err != nil {
		return err
	}
	if coding == identity {
		return nil
	}
	coded := x.body
	defer s.bodies.put(coded)
	x.body = s.bodies.get()
	if err := s.inflaters.inflate(x.body, coding, coded.data, b.limit); err != nil {
		return bodyFault(x, err, b)
	}
	return nil
}

// dropBody gives the memory of the body back before the answer is there: nothing
// may refer to its bytes any more.
func (x *exchange) dropBody() {
	x.resource.service.bodies.put(x.body)
	x.body = nil
}

// endBodyTime lets the handler take as long as it needs: past the deadline
// the connection would count as broken.
func endBodyTime(x *exchange) error {
	if !x.unread {
		return nil
	}
	x.unread = false
	if err := http.NewResponseController(x.w).SetReadDeadline(time.Time{}); err != nil {
		return clientGone(err)
	}
	return nil
}

// bodyFault says what it means that the body could not be read.
func bodyFault(x *exchange, err error, b body) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, errTooLarge):
		return fault.New(api.CodePayloadTooLarge, "the body may hold at most %d bytes, inflated", b.limit).
			With("limit_bytes", b.limit)
	case errors.Is(err, errNoMemory):
		return fault.Wrap(api.CodeUnavailable, err, "too many bodies are under way").With("applied", false)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.w.Header()["Connection"] = []string{"close"}
		return fault.Wrap(api.CodeRequestTimeout, err, "the body arrived too slowly")
	case isGone(x.r.Context(), err):
		return clientGone(err)
	default:
		x.w.Header()["Connection"] = []string{"close"}
		return fault.Wrap(api.CodeInvalidJSON, err, "the body is malformed in transit")
	}
}

// isGone reports whether reading failed because the client closed its side.
func isGone(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
