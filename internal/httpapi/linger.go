package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// A client that is refused while it is still sending reads the refusal only
// when it has sent everything, or loses it when the connection is reset. So
// the refusal goes out at once, and what is on its way is thrown away.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 8 << 20
)

// beginLinger prepares for an answer before the body's end. It reports
// whether linger has to follow.
func (s *service) beginLinger(x *exchange) bool {
	closing := x.w.Header()["Connection"] != nil
	// A client that waits for leave to send is simply not given it.
	waiting := x.r.Header["Expect"] != nil
	if closing || waiting || x.r.ProtoMajor != 1 {
		return false
	}
	if err := http.NewResponseController(x.w).EnableFullDuplex(); err != nil {
		s.Log.Debug("cannot answer before the body's end", "request_id", x.requestID, "err", err)
		return false
	}
	if x.r.ContentLength < 0 || x.r.ContentLength > lingerBytes {
		x.w.Header()["Connection"] = []string{"close"}
	}
	return true
}

// linger sends the answer off and throws away what the client still sends. If
// that does not end in time the connection is cut: what is left of the body
// must not be taken for the next request.
func (s *service) linger(x *exchange) {
	rc := http.NewResponseController(x.w)
	err := rc.Flush()
	if err == nil {
		err = rc.SetReadDeadline(time.Now().Add(lingerTime))
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, x.r.Body, lingerBytes)
	}
	if !errors.Is(err, io.EOF) {
		s.Log.Debug("refused body not read to its end", "request_id", x.requestID, "err", err)
		panic(http.ErrAbortHandler)
	}
}
