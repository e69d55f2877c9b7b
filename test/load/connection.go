package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// connection is a keep-alive connection that sends prepared requests. It
// knows just enough HTTP to read the answers of a server that gives their
// length: the load must cost little beside the server on the same machine.
type connection struct {
	net    net.Conn
	in     *bufio.Reader
	answer []byte
}

func dial(ctx context.Context, address string) (*connection, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &connection{net: c, in: bufio.NewReader(c)}, nil
}

// errAnswer is returned for an answer that is not the one expected.
var errAnswer = errors.New("unexpected answer")

// errBudget is returned for a query that went past its time budget.
var errBudget = errors.New("query past its time budget")

// do sends a request and returns the body of its answer, which must have the
// status 202. The body is valid until the next call.
func (c *connection) do(request []byte) ([]byte, error) { return c.expect(request, "202") }

// expect is do for another status.
func (c *connection) expect(request []byte, status string) ([]byte, error) {
	if _, err := c.net.Write(request); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	expected := bytes.HasPrefix(line, []byte("HTTP/1.1 "+status+" "))
	size, err := c.headers()
	if err != nil {
		return nil, err
	}
	c.answer = append(c.answer[:0], make([]byte, size)...)
	if _, err := io.ReadFull(c.in, c.answer); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	if !expected {
		return nil, fmt.Errorf("%w: %s", errAnswer, c.answer)
	}
	return c.answer, nil
}

// headers reads the headers and returns the length of the body.
func (c *connection) headers() (int, error) {
	size := 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, fmt.Errorf("receive: %w", err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return size, nil
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if size, err = strconv.Atoi(string(value)); err != nil {
				return 0, fmt.Errorf("receive: %w", err)
			}
		}
	}
}

// close ends the connection.
func (c *connection) close() error {
	if err := c.net.Close(); err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	return nil
}

// verdict is the beginning of the answer to a batch, all of whose events were
// accepted.
func verdict(events, duplicates int) []byte {
	return fmt.Appendf(nil, `{"accepted":%d,"duplicates":%d,"rejected":[]}`, events, duplicates)
}
