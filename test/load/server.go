package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// server is the program under test on a data folder of its own.
type server struct {
	*process
	secrets
	binary string
	dir    string
	client *http.Client
}

// newServer makes a data folder below a folder and starts the server on it.
func newServer(ctx context.Context, binary, dir string) (*server, error) {
	s := &server{binary: binary, dir: dir, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	var err error
	if s.secrets, err = initialise(ctx, binary, dir); err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// start starts the server on its folder, without rate budgets.
func (s *server) start(ctx context.Context) (err error) {
	s.process, err = launch(ctx, s.dir+".log", s.binary, "serve", "--data", s.dir, "--listen", "127.0.0.1:0",
		"--rate.requests_per_second=0", "--rate.browser_requests_per_second=0", "--log.format=text")
	return err
}

// request prepares a request with this server's key.
func (s *server) request(events int, seed uint64) *request {
	return newRequest(requestParams{Host: s.address, Key: s.ServerKey, Events: events, Seed: seed, Now: time.Now()})
}

// query asks a query and decodes the answer.
func (s *server) query(ctx context.Context, body []byte, into any) error {
	url := "http://" + s.address + "/api/v1/projects/" + s.ProjectID + "/query"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+s.AccessToken)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // read to its end
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %s", errBudget, content)
	default:
		return fmt.Errorf("query: %w: %s", errAnswer, content)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	return nil
}

// timed is the part of every answer that says what is in it.
type timed struct {
	StoredThrough time.Time `json:"stored_through"`
}

// pollInterval is how often the server is asked whether it has got there.
const pollInterval = 10 * time.Millisecond

// awaitStored waits until everything acknowledged before a time can be
// queried.
func (s *server) awaitStored(ctx context.Context, acknowledged time.Time) error {
	// No event is of that day, so the question costs next to nothing.
	body := []byte(`{"type":"breakdown","by":"event","from":"2001-01-01T00:00:00Z","to":"2001-01-02T00:00:00Z"}`)
	for {
		var answer timed
		if err := s.query(ctx, body, &answer); err != nil {
			return err
		}
		if answer.StoredThrough.After(acknowledged) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

// period is the members of a query that cover the load's events.
func period() string {
	now := time.Now().UTC().Truncate(time.Hour)
	return fmt.Sprintf(`"from":%q,"to":%q`, now.Add(-spread-2*time.Hour).Format(time.RFC3339), now.Add(2*time.Hour).Format(time.RFC3339))
}

// count returns how many events can be queried.
func (s *server) count(ctx context.Context) (int64, error) {
	var answer struct {
		Items []struct {
			Value int64 `json:"value"`
		} `json:"items"`
		Other int64 `json:"other"`
	}
	err := s.query(ctx, []byte(`{"type":"breakdown","by":"event",`+period()+`}`), &answer)
	total := answer.Other
	for i := range answer.Items {
		total += answer.Items[i].Value
	}
	return total, err
}

// files returns the size of the intake store and of the event store.
func (s *server) files() (intake, events int64, err error) {
	if intake, err = folderBytes(filepath.Join(s.dir, "intake")); err != nil {
		return 0, 0, err
	}
	events, err = folderBytes(filepath.Join(s.dir, "events"))
	return intake, events, err
}

// remove deletes the data folder.
func (s *server) remove() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove %s: %w", s.dir, err)
	}
	return nil
}
