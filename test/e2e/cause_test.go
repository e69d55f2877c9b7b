package e2e_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// keyWithAnotherBody uses the key of a deploy marker for another one.
func keyWithAnotherBody(t *testing.T, r *apptest.Running) refusal {
	first := deploy{[]string{"build-1001"}, `{"version":"1.0"}`, "", ""}
	if s := first.send(t, r); s.status != http.StatusCreated {
		t.Fatalf("%d %v", s.status, s.body)
	}
	other := deploy{[]string{"build-1001"}, `{"version":"1.1"}`, "", ""}
	response, err := http.DefaultClient.Do(other.request(t, r, r.URL))
	if err != nil {
		t.Fatal(err)
	}
	return readRefusal(t, response)
}

// refusedMove moves credits after others.
func refusedMove(t *testing.T, r *apptest.Running, m move, before ...move) refusal {
	t.Helper()
	for _, one := range before {
		one.must(t, r)
	}
	response, err := http.DefaultClient.Do(m.request(t, r, r.URL))
	if err != nil {
		t.Fatal(err)
	}
	return readRefusal(t, response)
}

// expiredToken uses an access token that was made two days ago for a day.
func expiredToken(t *testing.T, _ *apptest.Running) refusal {
	site := apptest.New(t)
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: filepath.Join(site.Dir, "actionpulse.db"), Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	past := func() time.Time { return time.Now().Add(-48 * time.Hour) }
	service := credential.NewService(credential.Params{Store: sqlstore.New(db), Clock: past, Random: rand.Reader})
	_, secret, err := service.Create(t.Context(), credential.CreateParams{
		Kind: credential.Access, Name: "old", OrganizationID: site.Setup.OrganizationID, UserID: site.Setup.UserID, Lifetime: 24 * time.Hour,
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	r := site.MustServe()
	return send(t, "POST", r.URL+"/api/v1/projects/"+site.Setup.Project.ID+"/query", secret, strings.NewReader(`{"type":"events"}`))
}

func suspended(t *testing.T, _ *apptest.Running) refusal {
	r := apptest.New(t).MustServe()
	operate(t, r, func(p app.OrganizationParams) error {
		return app.SuspendOrganization(t.Context(), p, r.Setup.OrganizationID)
	})
	return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(goodBatch))
}

// begin opens a connection and sends the head of a request with a body of a
// size, and nothing of the body.
func begin(t *testing.T, r *apptest.Running, size int) net.Conn {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it already
	if _, err := fmt.Fprintf(conn, "POST /v1/track HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", r.Setup.ServerKey, size); err != nil {
		t.Fatal(err)
	}
	return conn
}

func slowBody(t *testing.T, _ *apptest.Running) refusal {
	r := apptest.New(t, "--intake.body_timeout", "200ms").MustServe()
	conn := begin(t, r, 100)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return readRefusal(t, response)
}

// crowded fills the memory for bodies with requests that never go on.
func crowded(t *testing.T, _ *apptest.Running) refusal {
	r := apptest.New(t, "--intake.body_memory", "8MiB").MustServe()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(`{"events":[{"event":"e","anon_id":"a","properties":{"pad":"` + strings.Repeat("x", 60<<10) + `"}}]}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for deadline.Err() == nil {
		// One more request that never goes on; it may be refused itself.
		begin(t, r, 1<<20).Write(bytes.Repeat([]byte(" "), 1<<20-1)) //nolint:errcheck // a refusal is as good
		request := withHeader(t, r, "Content-Encoding", "gzip")
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(packed.Bytes())), int64(packed.Len())
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusAccepted {
			return readRefusal(t, response)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("there is always memory for one more body")
	return refusal{}
}

// slowQuery asks more of the event store than can be had in its time.
func slowQuery(t *testing.T, _ *apptest.Running) refusal {
	r := apptest.New(t, "--query.time_budget", "10ms").MustServe()
	for range 30 {
		r.TrackNew(1000)
	}
	steps := strings.TrimSuffix(strings.Repeat(`{"event":"e","where":[{"property":"properties.x","op":"not_set"}]},`, 10), ",")
	body := `{"type":"funnel","from":"2020-01-01T00:00:00Z","to":"2099-01-01T00:00:00Z","window":"24h","steps":[` + steps + `]}`
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for deadline.Err() == nil {
		response := do(t, "POST", r.URL+"/api/v1/projects/"+r.Setup.Project.ID+"/query", r.Setup.AccessToken, strings.NewReader(body))
		if response.StatusCode == http.StatusOK { // little of it is stored yet
			if err := response.Body.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		refused := readRefusal(t, response)
		if details, ok := refused.error["details"].(map[string]any); !ok || details["hint"] == nil {
			t.Errorf("no hint: %v", refused.error)
		}
		return refused
	}
	t.Fatal("every query is fast")
	return refusal{}
}
