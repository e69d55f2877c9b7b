package actionpulse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/actionpulse/actionpulse/retry"
)

// call is one request of the API, before it is sent.
type call struct {
	// operation is the operationId of the API document.
	operation string
	method    string
	// path is that of the API document; parts take the place of its {names}.
	path  string
	parts []string
	query url.Values
	// body is encoded as JSON; nil means none. raw, if it is not nil, is sent
	// as it is.
	body any
	raw  *payload
	// kind says what a repeat could do.
	kind retry.Kind
	// key is the Idempotency-Key; empty means none.
	key    string
	prefer string
	// once: nothing is repeated but what the server has certainly refused for
	// its rate.
	once bool
	// open: it is sent without a credential.
	open bool
	// stream: the answer is read while it comes.
	stream bool
}

// payload is a body in another format than JSON.
type payload struct {
	contentType string
	content     []byte
}

// reads is a call that changes nothing.
func reads(operation, path string, parts ...string) call {
	return call{operation: operation, method: http.MethodGet, path: path, parts: parts, kind: retry.Read}
}

// changes is a call that changes something, and is not repeated by itself.
func changes(operation, method, path string, parts ...string) call {
	return call{operation: operation, method: method, path: path, parts: parts, kind: retry.Mutation}
}

// keyed is a call that does the work which key names, once.
func keyed(operation, path, key string, parts ...string) call {
	return call{operation: operation, method: http.MethodPost, path: path, parts: parts, kind: retry.Keyed, key: key}
}

func (c call) with(body any) call {
	c.body = body
	return c
}

func (c call) ask(query url.Values) call {
	c.query = query
	return c
}

// byIdentity says that the path names the work, and that a repeat returns what
// was done, whatever has happened since: sending it again is safe like work
// under a key.
func (c call) byIdentity() call {
	c.kind = retry.Keyed
	return c
}

// request makes the HTTP request. Its body is encoded here, once, so that
// every attempt carries the same bytes.
func (l *link) request(ctx context.Context, c *call) (*http.Request, error) {
	path, err := c.escapedPath()
	if err != nil {
		return nil, err
	}
	body, err := c.payload()
	if err != nil {
		return nil, err
	}
	target := l.base + path
	if len(c.query) > 0 {
		target += "?" + c.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, c.method, target, bytes.NewReader(body.content))
	if err != nil {
		return nil, errors.New("the request cannot be made")
	}
	l.setHeaders(request.Header, c)
	if body.content != nil {
		request.Header.Set("Content-Type", body.contentType)
	}
	return request, nil
}

func (l *link) setHeaders(h http.Header, c *call) {
	h.Set("User-Agent", l.agent)
	if token := l.token; token != nil && !c.open {
		if t := token(); t != "" {
			h.Set("Authorization", "Bearer "+t)
		}
	}
	if c.key != "" {
		h.Set("Idempotency-Key", c.key)
	}
	if c.prefer != "" {
		h.Set("Prefer", c.prefer)
	}
}

func (c call) payload() (payload, error) {
	if c.raw != nil {
		return *c.raw, nil
	}
	if c.body == nil {
		return payload{}, nil
	}
	content, err := json.Marshal(c.body)
	if err != nil {
		return payload{}, fmt.Errorf("the body cannot be encoded: %w", err)
	}
	return payload{contentType: "application/json", content: content}, nil
}

// escapedPath puts the parts into the path. It refuses parts that would name
// another path, or none: empty ones, "." and "..".
func (c call) escapedPath() (string, error) {
	path := c.path
	for _, part := range c.parts {
		begin, end := strings.IndexByte(path, '{'), strings.IndexByte(path, '}')
		if begin < 0 || end < begin {
			return "", fmt.Errorf("%s has fewer parts than were given", c.path)
		}
		name := path[begin+1 : end]
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("%s must not be empty, \".\" or \"..\"", name)
		}
		// A brace of a part is escaped, so that it is never taken for a name.
		path = path[:begin] + url.PathEscape(part) + path[end+1:]
	}
	return path, nil
}
