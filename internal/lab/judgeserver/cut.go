package judgeserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// cutPatience is how long a server may take to notice that a request has ended
// early.
const cutPatience = 5 * time.Second

// cut sends the head of a request and half its body, and ends the connection as
// one that breaks does. It returns when the server has noticed, with what it
// answered, if it did.
func (c *client) cut(ctx context.Context, r request) (answer, error) {
	whole, err := r.build(ctx)
	if err != nil {
		return answer{}, err
	}
	conn, err := dial(ctx, whole.URL)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close() //nolint:errcheck // it is meant to break
	head := bytes.NewBufferString(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", r.method, whole.URL.RequestURI(), whole.Host, len(r.body)))
	if err := whole.Header.Write(head); err != nil {
		return answer{}, err
	}
	head.WriteString("\r\n")
	head.Write(r.body[:len(r.body)/2])
	if err := errors.Join(conn.SetDeadline(time.Now().Add(cutPatience)), write(conn, head.Bytes())); err != nil {
		return answer{}, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), whole)
	if err != nil {
		return answer{err: err}, nil
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return answer{status: response.StatusCode, header: response.Header, body: content, err: errors.Join(err, response.Body.Close())}, nil
}

func dial(ctx context.Context, address *url.URL) (net.Conn, error) {
	host, port := address.Hostname(), address.Port()
	if address.Scheme == "https" {
		d := tls.Dialer{}
		return d.DialContext(ctx, "tcp", net.JoinHostPort(host, cmp.Or(port, "443")))
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", net.JoinHostPort(host, cmp.Or(port, "80")))
}

// write writes all there will be.
func write(conn net.Conn, content []byte) error {
	if _, err := conn.Write(content); err != nil {
		return err
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
