package backup_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

// load sends requests of every kind until it is stopped, and remembers them
// with what it heard.
type load struct {
	client *conversation.Client
	group  sync.WaitGroup

	mu sync.Mutex
	// heard says that something was heard.
	heard   *sync.Cond
	stopped bool
	said    []conversation.Exchange
	err     error
}

// writers make their requests in turn, again and again: what one needs, such as
// credits to charge, was made before it.
var writers = [][]func(n int) conversation.Exchange{
	{
		func(n int) conversation.Exchange {
			return intake("track", conversation.Duplicates, `{"events":[{"event_id":"00000000-0000-4000-8000-%012d","event":"load","user_id":"u"}]}`, n)
		},
		func(n int) conversation.Exchange {
			return intake("replay", conversation.Chunk, `{"session_id":"load","chunk":%d,"user_id":"u","events":[{"type":4,"timestamp":1777000000000}]}`, n)
		},
		func(n int) conversation.Exchange {
			return intake("identify", conversation.Never, `{"anon_id":"a-%d","user_id":"identified"}`, n)
		},
		func(n int) conversation.Exchange {
			return intake("alias", conversation.Same, `{"anon_id":"b-%d","user_id":"aliased"}`, n)
		},
	},
	{
		func(n int) conversation.Exchange { return move("topup", "10", n) },
		func(n int) conversation.Exchange { return move("charge", "1.5", n) },
		func(n int) conversation.Exchange { return move("adjust", "-0.5", n) },
	},
	{
		func(n int) conversation.Exchange {
			return conversation.Exchange{
				As: conversation.AsCI, Method: http.MethodPost, Path: "/api/v1/projects/{id}/release-markers/deploy",
				Key: fmt.Sprintf("load-deploy-%d", n), Body: fmt.Sprintf(`{"version":"1.%d"}`, n), Repeat: conversation.Replayed,
			}
		},
		func(n int) conversation.Exchange { return execute("sync", n) },
		func(n int) conversation.Exchange { return execute("async", n) },
	},
}

func intake(method string, repeat conversation.Repeat, body string, n int) conversation.Exchange {
	return conversation.Exchange{
		As: conversation.AsServer, Method: http.MethodPost, Path: "/v1/" + method, Repeat: repeat, Body: fmt.Sprintf(body, n),
	}
}

func move(kind, amount string, n int) conversation.Exchange {
	return conversation.Exchange{
		As: conversation.AsProject, Method: http.MethodPost, Path: "/v1/customers/load/" + kind, Repeat: conversation.Bytes,
		Key: fmt.Sprintf("load-%s-%d", kind, n), Body: fmt.Sprintf(`{"credit_type":"main","amount":%q}`, amount),
	}
}

// execute runs a flow that conversation.Talk has published.
func execute(mode string, n int) conversation.Exchange {
	return conversation.Exchange{
		As: conversation.AsProject, Method: http.MethodPost, Path: "/v1/operations/execute", Repeat: conversation.Execution,
		Key: fmt.Sprintf("load-%s-%d", mode, n), Body: fmt.Sprintf(`{"flow":"plain","input":{"text":"%d"},"execution_mode":%q}`, n, mode),
	}
}

func startLoad(ctx context.Context, c *conversation.Client) *load {
	l := &load{client: c}
	l.heard = sync.NewCond(&l.mu)
	for _, requests := range writers {
		l.group.Go(func() {
			for n := 0; l.goesOn(); n++ {
				said, _, err := c.Send(ctx, requests[n%len(requests)](n))
				if err == nil && said.Status >= http.StatusMultipleChoices {
					err = fmt.Errorf("%s: %d %s", said, said.Status, said.Answer)
				}
				l.hear(said, err)
			}
		})
	}
	return l
}

func (l *load) goesOn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.stopped && l.err == nil
}

func (l *load) hear(said conversation.Exchange, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, said)
	if l.err == nil {
		l.err = err
	}
	l.heard.Broadcast()
}

// soFar returns what has been answered by now.
func (l *load) soFar() []conversation.Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]conversation.Exchange(nil), l.said...)
}

// atLeast returns when so many requests have been answered.
func (l *load) atLeast(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.said) < n && l.err == nil {
		l.heard.Wait()
	}
	if l.err != nil {
		t.Fatal(l.err)
	}
}

// stop ends the load and returns what has been answered.
func (l *load) stop(t *testing.T) []conversation.Exchange {
	t.Helper()
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.group.Wait()
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.said
}

// identified counts the calls of identify, each of which adds an event.
func identified(said []conversation.Exchange) (n float64) {
	for _, e := range said {
		if e.Path == "/v1/identify" {
			n++
		}
	}
	return n
}
