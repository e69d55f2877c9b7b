package e2e_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/actionpulse/actionpulse/internal/apptest"
)

// lost counts what a network did that loses an answer.
type lost struct {
	// delivered is how many POSTs reached the server, reset how many answers to
	// them were lost.
	delivered, reset atomic.Int64
}

// losesFirstAnswer returns a client that has one connection, already used, to a
// proxy that delivers everything and resets the connection instead of passing on
// the first answer to a POST.
func losesFirstAnswer(t *testing.T, r *apptest.Running) (*http.Client, string, *lost) {
	t.Helper()
	var l lost
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		response, answer := deliver(t, r, request) //nolint:bodyclose // deliver has closed it
		if response == nil {
			return
		}
		if request.Method == http.MethodPost && l.delivered.Add(1) == 1 {
			l.reset.Add(1)
			cut(t, w)
			return
		}
		maps.Copy(w.Header(), response.Header)
		w.WriteHeader(response.StatusCode)
		w.Write(answer) //nolint:errcheck // the client says what it got
	}))
	t.Cleanup(proxy.Close)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	t.Cleanup(client.CloseIdleConnections)
	warm, err := client.Get(proxy.URL + "/healthz") // the connection is to be used again
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, warm.Body); err != nil || warm.Body.Close() != nil {
		t.Fatal(err)
	}
	return client, proxy.URL, &l
}

// deliver hands a request to the server and reads the whole answer.
func deliver(t *testing.T, r *apptest.Running, request *http.Request) (*http.Response, []byte) {
	t.Helper()
	content, err := io.ReadAll(request.Body)
	if err != nil {
		t.Error(err)
	}
	onward := request.Clone(request.Context())
	onward.RequestURI, onward.Body = "", io.NopCloser(bytes.NewReader(content))
	onward.URL.Scheme, onward.URL.Host = "http", strings.TrimPrefix(r.URL, "http://")
	response, err := http.DefaultTransport.RoundTrip(onward)
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.Body.Close() != nil {
		t.Error(err)
	}
	return response, answer
}
