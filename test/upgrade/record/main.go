// Command record makes a fixture of a release for the upgrade test of the next
// one: it makes a data folder with that release's binary, talks to it, kills it
// while items wait, and keeps the folder with what was said. Run it at the
// commit of the release, or with binaries that were built there:
//
//	go build -o bin/release ./cmd/actionpulse
//	go build -tags crashpoints -o bin/release-crash ./cmd/actionpulse
//	go run ./test/upgrade/record -binary bin/release -crash-binary bin/release-crash \
//		-commit "$(git rev-parse --short HEAD)" -out test/upgrade/testdata/<release>
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/test/upgrade"
	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

// late is how many requests wait in the intake store at the end.
const late = 3

// crashes is how often a start dies before an item is set aside: three times at
// its batch and three at itself.
const crashes = 6

func main() {
	var r recorder
	var commit, out string
	flag.StringVar(&r.binary, "binary", "", "the release's binary")
	flag.StringVar(&r.crashing, "crash-binary", "", "the same with crash points")
	flag.StringVar(&commit, "commit", "", "the commit that it was built from")
	flag.StringVar(&out, "out", "", "the folder that gets the fixture")
	flag.Parse()
	if err := r.record(context.Background(), commit, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// recorder makes a data folder with binaries of a release.
type recorder struct {
	binary, crashing string
	data             string
	fixture          upgrade.Fixture
}

func (r *recorder) record(ctx context.Context, commit, out string) (err error) {
	work, err := os.MkdirTemp("", "actionpulse-record-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r.data, r.fixture.Commit = filepath.Join(work, "data"), commit
	made, err := r.command(ctx, r.data, "init", "--json").Output()
	if err == nil {
		err = json.Unmarshal(made, &r.fixture.Credentials)
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	for _, part := range []func(context.Context) error{r.talk, r.quarantine, r.late} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	r.fixture.RecordedAt = time.Now().UTC()
	kept := filepath.Join(work, "kept")
	if err := os.CopyFS(kept, os.DirFS(r.data)); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	return r.fixture.Save(out, kept)
}

// talk says everything to a server that stops as it should.
func (r *recorder) talk(ctx context.Context) error {
	s, err := r.serve(ctx, r.binary, "500ms", "")
	if err != nil {
		return err
	}
	said, err := conversation.Talk(ctx, s.client, time.Now(), 1)
	r.fixture.Said = said
	return errors.Join(err, s.stop())
}

// quarantine has an item set aside: it seems to kill every start.
func (r *recorder) quarantine(ctx context.Context) error {
	if err := r.wait(ctx, 2, 1); err != nil {
		return err
	}
	for range crashes {
		switch s, err := r.serve(ctx, r.crashing, "500ms", "ACTIONPULSE_CRASH_AT=eventstore.flushed:1"); {
		case err == nil:
			<-s.ended
		case !errors.Is(err, errDied):
			return err
		}
	}
	s, err := r.serve(ctx, r.binary, "500ms", "")
	if err != nil {
		return err
	}
	return errors.Join(s.stored(ctx, r.fixture.Said[len(r.fixture.Said)-1]), s.stop())
}

// wait kills a server while items of n requests wait: after the first request,
// it waits long for more.
func (r *recorder) wait(ctx context.Context, seed uint64, n int) error {
	s, err := r.serve(ctx, r.binary, "10s", "")
	if err != nil {
		return err
	}
	said, err := s.client.Late(ctx, seed, 1)
	if err == nil {
		err = s.stored(ctx, said[0])
	}
	if err != nil {
		return errors.Join(err, s.kill())
	}
	waiting, err := s.client.Late(ctx, seed+1, n)
	r.fixture.Said = append(append(r.fixture.Said, said...), waiting...)
	return errors.Join(err, s.kill())
}

// late leaves items behind that wait.
func (r *recorder) late(ctx context.Context) error { return r.wait(ctx, 4, late) }

// stored waits until the last event of a request can be queried.
func (s *server) stored(ctx context.Context, said conversation.Exchange) error {
	var sent struct {
		Events []struct {
			ID string `json:"event_id"`
		} `json:"events"`
	}
	if err := json.Unmarshal([]byte(said.Body), &sent); err != nil {
		return err
	}
	now := time.Now().UTC()
	question := conversation.Exchange{As: conversation.AsOwner, Method: http.MethodPost, Path: "/api/v1/projects/{id}/query", Body: fmt.Sprintf(
		`{"type":"events","limit":200,"from":%q,"to":%q}`, now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))}
	for {
		answer, _, err := s.client.Send(ctx, question)
		if err != nil || strings.Contains(answer.Answer, sent.Events[len(sent.Events)-1].ID) {
			return err
		}
	}
}

// look goes on with the folder and asks what is there.
func (r *recorder) look(ctx context.Context) error {
	var report struct {
		OK          bool   `json:"ok"`
		Backlog     uint64 `json:"backlog"`
		Quarantined int    `json:"quarantined"`
	}
	out, err := r.command(ctx, r.data, "verify", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &report)
	}
	if err != nil || !report.OK || report.Backlog == 0 || report.Quarantined == 0 {
		return fmt.Errorf("verify: %w: %s", errors.Join(err, errors.New("something should wait and something be set aside")), out)
	}
	r.fixture.Waiting, r.fixture.Quarantined = report.Backlog, report.Quarantined
	s, err := r.serve(ctx, r.binary, "500ms", "")
	if err != nil {
		return err
	}
	if err := s.stop(); err != nil { // everything is stored now
		return err
	}
	if s, err = r.serve(ctx, r.binary, "500ms", ""); err != nil {
		return err
	}
	r.fixture.Seen, err = conversation.Look(ctx, s.client, r.fixture.RecordedAt)
	return errors.Join(err, s.stop())
}
