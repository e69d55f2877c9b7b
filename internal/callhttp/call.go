package callhttp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	step "github.com/actionpulse/actionpulse/internal/flow/step/http"
)

// MaxBody is how large the body of an answer to an http step may be.
const MaxBody = 1 << 20

var _ step.Caller = (*Client)(nil)

// Call implements the port of http steps.
func (c *Client) Call(ctx context.Context, r *step.Request) (*step.Response, error) {
	header := http.Header{}
	for name, value := range r.Headers {
		header.Set(name, value)
	}
	response, err := c.Open(ctx, &Request{Method: r.Method, URL: r.URL, Header: header, Body: r.Body})
	if f, ok := errors.AsType[*Error](err); ok {
		return nil, &step.Error{Sent: f.Sent, Retryable: f.Retryable, Message: f.Message, Err: f.Err}
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing more is wanted of it
	out := &step.Response{Status: response.StatusCode, Headers: map[string]string{}}
	for name, values := range response.Header {
		out.Headers[strings.ToLower(name)] = values[0]
	}
	content, whole, err := Read(response.Body, MaxBody)
	out.Body, out.TooLarge = content, !whole
	switch {
	case !whole:
		out.Cut = "the answer is larger than 1 MiB"
	case err != nil:
		out.Cut = Explain(err)
	}
	return out, nil
}
