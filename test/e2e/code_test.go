package e2e_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to suspend an organization behind the server's back

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

const goodBatch = `{"events":[{"event":"e","anon_id":"a"}]}`

// refusal is one answer of the error envelope.
type refusal struct {
	status int
	header http.Header
	code   api.Code
	error  map[string]any
}

// send sends a request as it is and reads the envelope.
func send(t *testing.T, method, url, secret string, body io.Reader) refusal {
	t.Helper()
	return readRefusal(t, do(t, method, url, secret, body)) //nolint:bodyclose // readRefusal closes it
}

// do sends a request as it is.
func do(t *testing.T, method, url, secret string, body io.Reader) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func readRefusal(t *testing.T, response *http.Response) refusal {
	t.Helper()
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal(content, &envelope); err != nil || envelope.Error == nil {
		t.Fatalf("%d %q is no envelope: %v", response.StatusCode, content, err)
	}
	code, _ := envelope.Error["code"].(string)
	return refusal{response.StatusCode, response.Header, api.Code(code), envelope.Error}
}

// TestEveryCodeHasACause produces every code of the catalogue with a real
// cause and checks the envelope against what the catalogue says of it.
func TestEveryCodeHasACause(t *testing.T) {
	causes := map[api.Code]func(*testing.T) refusal{
		api.CodeInvalidJSON: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(`{"events":`))
		},
		api.CodeUnauthenticated: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			return send(t, "POST", r.URL+"/v1/track", "", strings.NewReader(goodBatch))
		},
		api.CodeTokenExpired:    expiredToken,
		api.CodePaymentRequired: suspended,
		api.CodeForbidden: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			return send(t, "POST", r.URL+"/v1/track", r.Setup.CIToken, strings.NewReader(goodBatch))
		},
		api.CodeNotFound: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			return send(t, "POST", r.URL+"/v1/trac", r.Setup.ServerKey, strings.NewReader(goodBatch))
		},
		api.CodeMethodNotAllowed: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			return send(t, "DELETE", r.URL+"/v1/track", r.Setup.ServerKey, nil)
		},
		api.CodeRequestTimeout: slowBody,
		api.CodePayloadTooLarge: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(strings.Repeat(" ", 1<<20+1)))
		},
		api.CodeUnsupportedMediaType: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			response, err := http.DefaultClient.Do(withHeader(t, r, "Content-Encoding", "br"))
			if err != nil {
				t.Fatal(err)
			}
			return readRefusal(t, response)
		},
		api.CodeValidationFailed: func(t *testing.T) refusal {
			r := apptest.New(t).MustServe()
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(`{"events":[]}`))
		},
		api.CodeRateLimited: func(t *testing.T) refusal {
			r := apptest.New(t, "--rate.requests_per_second", "0.001", "--rate.burst", "1").MustServe()
			r.TrackNew(1)
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(goodBatch))
		},
		api.CodeInternal: func(t *testing.T) refusal {
			r := apptest.New(t, "--storage.min_free_bytes", "900TB").MustServe()
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(goodBatch))
		},
		api.CodeUnavailable:  crowded,
		api.CodeQueryTimeout: slowQuery,
	}
	for _, spec := range api.Catalogue {
		t.Run(string(spec.Code), func(t *testing.T) {
			cause := causes[spec.Code]
			if cause == nil {
				t.Fatal("nothing here produces it")
			}
			r := cause(t)
			details, ok := r.error["details"].(map[string]any)
			if !ok || r.code != spec.Code || r.status != spec.Status {
				t.Fatalf("%d %v, want %d %s", r.status, r.error, spec.Status, spec.Code)
			}
			if details["retryable"] != spec.Retryable || r.header.Get("X-Should-Retry") != fmt.Sprint(spec.ShouldRetry) {
				t.Errorf("details %v, X-Should-Retry %q", details, r.header.Get("X-Should-Retry"))
			}
			if id := r.header.Get("X-Request-Id"); id == "" || r.error["request_id"] != id || r.error["message"] == "" {
				t.Errorf("%v, X-Request-Id %q", r.error, id)
			}
			if wait := r.header.Get("Retry-After"); (spec.Code == api.CodeRateLimited || spec.Code == api.CodeUnavailable) && wait == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

func withHeader(t *testing.T, r *apptest.Running, name, value string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/v1/track", strings.NewReader(goodBatch))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.Setup.ServerKey)
	request.Header.Set(name, value)
	return request
}

// expiredToken uses an access token that was made two days ago for a day.
func expiredToken(t *testing.T) refusal {
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

func suspended(t *testing.T) refusal {
	site := apptest.New(t)
	db, err := sql.Open("sqlite", filepath.Join(site.Dir, "actionpulse.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE organizations SET suspended_at = 1`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	r := site.MustServe()
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

func slowBody(t *testing.T) refusal {
	r := apptest.New(t, "--intake.body_timeout", "200ms").MustServe()
	conn := begin(t, r, 100)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return readRefusal(t, response)
}

// crowded fills the memory for bodies with requests that never go on.
func crowded(t *testing.T) refusal {
	r := apptest.New(t, "--intake.body_memory", "8MiB").MustServe()
	for range 64 {
		conn := begin(t, r, 1<<20)
		if _, err := conn.Write(bytes.Repeat([]byte(" "), 1<<20-1)); err != nil {
			break // it was refused
		}
	}
	for {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(`{"events":[{"event":"e","anon_id":"a","properties":{"pad":"` + strings.Repeat("x", 60<<10) + `"}}]}`)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		request := withHeader(t, r, "Content-Encoding", "gzip")
		request.Body, request.ContentLength = io.NopCloser(&packed), int64(packed.Len())
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == http.StatusAccepted { // the others have not arrived yet
			if err := response.Body.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		return readRefusal(t, response)
	}
}

// slowQuery asks more of the event store than can be had in its time.
func slowQuery(t *testing.T) refusal {
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
