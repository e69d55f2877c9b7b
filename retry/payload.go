package retry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// payload is the body of a request, to be sent once or more often.
type payload struct {
	// first is the body for the first attempt, until it has been taken.
	first io.ReadCloser
	// again opens the body for each later attempt; nil if it can only be sent
	// once.
	again func() (io.ReadCloser, error)
	// length is the Content-Length.
	length int64
}

// newPayload takes the body of a request. One without GetBody is read up to
// limit bytes and kept; what is longer can be sent once. It returns an
// [*unfitError] if the body does not have the length that the request says, the
// error of a body that cannot be read, and the cause of ctx; the body is closed
// then.
func newPayload(ctx context.Context, request *http.Request, limit int64) (*payload, error) {
	body, length := request.Body, request.ContentLength
	if body == nil || body == http.NoBody {
		return &payload{first: http.NoBody, again: noBody}, nil
	}
	if request.GetBody != nil {
		return &payload{first: body, again: request.GetBody, length: length}, nil
	}
	if length > limit {
		return &payload{first: body, length: length}, nil
	}
	content, err := readBody(ctx, body, limit)
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		rest := io.MultiReader(bytes.NewReader(content), body)
		return &payload{first: readCloser{rest, body}, length: length}, nil
	}
	if err := body.Close(); err != nil {
		return nil, fmt.Errorf("closing the body: %w", err)
	}
	if length > 0 && length != int64(len(content)) {
		return nil, &unfitError{fmt.Errorf("the Content-Length is %d, the body has %d bytes", length, len(content))}
	}
	return newSnapshot(content), nil
}

func newSnapshot(content []byte) *payload {
	if len(content) == 0 {
		return &payload{first: http.NoBody, again: noBody}
	}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return &payload{first: io.NopCloser(bytes.NewReader(content)), again: again, length: int64(len(content))}
}

func noBody() (io.ReadCloser, error) { return http.NoBody, nil }

type readCloser struct {
	io.Reader
	io.Closer
}

// readBody reads up to one byte more than limit, and not for longer than ctx
// lasts, whatever the body does.
func readBody(ctx context.Context, body io.ReadCloser, limit int64) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	read := make(chan result, 1)
	go func() {
		content, err := io.ReadAll(io.LimitReader(body, limit+1))
		read <- result{content, err}
	}()
	select {
	case r := <-read:
		if r.err != nil {
			body.Close() //nolint:errcheck // that it cannot be read is what matters
			return nil, fmt.Errorf("reading the body: %w", r.err)
		}
		return r.content, nil
	case <-ctx.Done():
		body.Close() //nolint:errcheck // it is not used
		return nil, context.Cause(ctx)
	}
}

// next returns the body for the next attempt, and reports false if there is
// none, because it can only be sent once or cannot be opened again.
func (p *payload) next() (body io.ReadCloser, ok bool) {
	if p.first != nil {
		body, p.first = p.first, nil
		return body, true
	}
	if p.again == nil {
		return nil, false
	}
	body, err := p.again()
	return body, err == nil && body != nil
}

// close closes the body if no attempt has taken it.
func (p *payload) close() {
	if p.first != nil {
		p.first.Close() //nolint:errcheck // it was not used
		p.first = nil
	}
}

// once reports whether the body has been sent and cannot be sent again.
func (p *payload) once() bool { return p.first == nil && p.again == nil }
