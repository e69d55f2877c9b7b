package torture_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/uuid"
)

// The quota of the test, and how many events a request has.
const (
	quotaEvents = 100
	quotaBatch  = 7
)

// spender sends batches under a quota to a server that is killed, and knows what
// the count must be.
type spender struct {
	*testing.T
	program program
	keys    credentials
	address string
	server  *process
	// batches are all bodies; those from known on may not have been taken.
	batches [][]byte
	known   int
}

// serve starts a server with the quota; slow ones store nothing by themselves
// for a while.
func (s *spender) serve(slow bool, extra ...string) {
	s.Helper()
	flags := []string{"--plans", fmt.Sprintf(`{"all":{"events":%d}}`, quotaEvents), "--default_plan", "all", "--materializer.max_delay", "5ms"}
	if slow {
		flags[len(flags)-1] = "10s"
	}
	s.server = s.program.serve(s.T, s.address, flags, extra...)
	if !s.server.await(s.T) {
		s.Fatal("the server does not start")
	}
}

// ask sends a request; status 0 is no answer.
func (s *spender) ask(method, path, secret string, body []byte) (status int, answer map[string]any) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.address+path, bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return 0, nil
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		s.Fatalf("%d %q: %v", response.StatusCode, content, err)
	}
	return response.StatusCode, answer
}

// send sends a batch of its own until an answer is not a 202, at most n times.
func (s *spender) send(n int) (status int) {
	s.Helper()
	for range n {
		var items bytes.Buffer
		for i := range quotaBatch {
			if i > 0 {
				items.WriteByte(',')
			}
			fmt.Fprintf(&items, `{"event_id":%q,"event":"e","user_id":"u"}`, uuid.NewString())
		}
		body := []byte(`{"events":[` + items.String() + `]}`)
		if status, _ = s.ask("POST", "/v1/track", s.keys.ServerKey, body); status == http.StatusTooManyRequests {
			return status
		}
		s.batches = append(s.batches, body)
		if status == 0 {
			return 0
		}
		s.known++
	}
	return status
}

// used is what the server says was used.
func (s *spender) used() int {
	s.Helper()
	_, list := s.ask("GET", "/api/v1/organizations", s.keys.AccessToken, nil)
	organization := list["items"].([]any)[0].(map[string]any)["id"] //nolint:forcetypeassert // a panic says as much
	_, usage := s.ask("GET", fmt.Sprintf("/api/v1/organizations/%v/usage", organization), s.keys.AccessToken, nil)
	return int(usage["events"].(map[string]any)["used"].(float64)) //nolint:forcetypeassert // a panic says as much
}

// settle repeats every batch, which costs nothing but what had not been taken,
// and demands that each event counts once.
func (s *spender) settle(when string) {
	s.Helper()
	if used := s.used(); used < s.known*quotaBatch || used > len(s.batches)*quotaBatch || used%quotaBatch != 0 {
		s.Fatalf("%s: %d events count, %d of %d batches were acknowledged", when, used, s.known, len(s.batches))
	}
	for i, body := range s.batches {
		status, answer := s.ask("POST", "/v1/track", s.keys.ServerKey, body)
		if status != http.StatusAccepted || i < s.known && answer["duplicates"] != float64(quotaBatch) {
			s.Fatalf("%s: batch %d of %d: %d %v", when, i, s.known, status, answer)
		}
	}
	s.known = len(s.batches)
	if used := s.used(); used != s.known*quotaBatch {
		s.Fatalf("%s: %d events count, %d were sent", when, used, s.known*quotaBatch)
	}
}

// TestQuotaOutlivesKills: wherever the process dies, between deciding and
// storing, what counts after the next start is what is there: an event that was
// acknowledged once, however often it was sent, and one that was not never. At
// the end the quota is spent to the request.
func TestQuotaOutlivesKills(t *testing.T) {
	t.Parallel()
	s := &spender{T: t, program: program{path: buildBinary(t), data: t.TempDir() + "/data", log: t.TempDir() + "/log"}}
	s.keys = s.program.init(t.Context(), t)
	s.address, _ = freeAddresses(t)
	for _, point := range []string{"intake.decided:2", "intake.synced:2", "eventstore.committed:1"} {
		s.serve(false, "ACTIONPULSE_CRASH_AT="+point)
		s.send(2)
		if r := s.server.end(t); !r.killed {
			t.Fatalf("the server did not die at %s: %s", point, r)
		}
		s.serve(true)
		s.settle(point)
		s.server.drain(t)
	}
	s.serve(true)
	s.send(2)
	s.server.kill(t) // nothing of that was stored yet
	s.serve(true)
	s.settle("with a backlog")
	if status := s.send(quotaEvents); status != http.StatusTooManyRequests {
		t.Fatalf("the quota ends with %d", status)
	}
	s.server.kill(t)
	s.serve(false)
	if status := s.send(1); status != http.StatusTooManyRequests {
		t.Fatalf("after a kill there is quota again: %d", status)
	}
	s.settle("used up")
	want := (quotaEvents + quotaBatch - 1) / quotaBatch * quotaBatch
	if used := s.used(); used != want {
		t.Errorf("%d events count, want %d", used, want)
	}
	s.server.drain(t)
	if r := s.program.verify(t.Context(), t); r.Rows != want {
		t.Errorf("%d rows are stored, want %d", r.Rows, want)
	}
}
