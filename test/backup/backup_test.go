package backup_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/app"
	"github.com/actionpulse/actionpulse/internal/apptest"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func client(r *apptest.Running) *conversation.Client {
	s := r.Setup
	return &conversation.Client{URL: r.URL, HTTP: http.DefaultClient, Credentials: conversation.Credentials{
		ProjectID: s.Project.ID, AccessToken: s.AccessToken, BrowserToken: s.BrowserToken, ServerKey: s.ServerKey,
		LegacyKey: s.LegacyKey, ProjectKey: s.ProjectKey, CIToken: s.CIToken,
	}}
}

// load sends events and movements until it is stopped, and remembers them with
// what it heard.
type load struct {
	client *conversation.Client
	stop   atomic.Bool
	group  sync.WaitGroup

	mu   sync.Mutex
	said []conversation.Exchange
	err  error
}

// requests are those of a writer, by number.
var requests = []func(writer, n int) conversation.Exchange{
	func(writer, n int) conversation.Exchange {
		return conversation.Exchange{
			As: conversation.AsServer, Method: http.MethodPost, Path: "/v1/track", Repeat: conversation.Duplicates,
			Body: fmt.Sprintf(`{"events":[{"event_id":"0000000%d-0000-4000-8000-%012d","event":"load","user_id":"u"}]}`, writer, n),
		}
	},
	func(writer, n int) conversation.Exchange {
		return conversation.Exchange{
			As: conversation.AsProject, Method: http.MethodPost, Path: "/v1/customers/load/topup", Repeat: conversation.Bytes,
			Key: fmt.Sprintf("load-%d-%d", writer, n), Body: `{"credit_type":"main","amount":"1"}`,
		}
	},
}

func startLoad(ctx context.Context, c *conversation.Client) *load {
	l := &load{client: c}
	for writer, request := range requests {
		l.group.Go(func() {
			for n := 1; !l.stop.Load(); n++ {
				said, _, err := c.Send(ctx, request(writer, n))
				l.mu.Lock()
				l.said, l.err = append(l.said, said), err
				l.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	return l
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
	for len(l.soFar()) < n {
		if t.Context().Err() != nil {
			t.Fatal("there is no load")
		}
	}
}

// backup copies a site into a new folder.
func backup(t *testing.T, s *apptest.Site) (dir string, r app.BackupReport) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "backup")
	r, err := app.Backup(t.Context(), app.BackupParams{Config: s.Config().Folder, Out: dir, Log: apptest.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

// restore makes a new site of a backup of s.
func restore(t *testing.T, s *apptest.Site, from string, flags ...string) *apptest.Site {
	t.Helper()
	site := apptest.At(t, filepath.Join(t.TempDir(), "restored"), flags...)
	site.Setup = s.Setup
	r, err := app.Restore(t.Context(), app.RestoreParams{
		From: from, Data: site.Dir, Database: site.Config().Database, Log: apptest.Discard,
	})
	if err != nil || !r.Verify.OK {
		t.Fatalf("%+v %v", r.Verify, err)
	}
	return site
}

// again demands that every request is answered as a repeat.
func again(t *testing.T, r *apptest.Running, said []conversation.Exchange) {
	t.Helper()
	faults, err := client(r).Again(t.Context(), said)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults[:min(len(faults), 5)] {
		t.Error(fault)
	}
}

// A copy made under load knows every request that was answered before it was
// begun, and those that came after it was made are new to it.
func TestARestoredFolderKnowsEveryRequest(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func() []string{
		"SQLite":     func() []string { return nil },
		"PostgreSQL": func() []string { return []string{"--database", pgtest.New(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := apptest.New(t, database()...)
			r := site.MustServe()
			said, err := conversation.Talk(t.Context(), client(r), time.Now(), 7)
			if err != nil {
				t.Fatal(err)
			}
			l := startLoad(t.Context(), client(r))
			l.atLeast(t, 50)
			before := l.soFar()
			dir, report := backup(t, site)
			during := len(l.soFar())
			l.atLeast(t, during+50)
			l.stop.Store(true)
			l.group.Wait()
			after := l.said[during+len(requests):]
			if l.err != nil || !report.Online || during == len(before) {
				t.Fatalf("%v; online %t, %d requests were answered during the backup", l.err, report.Online, during-len(before))
			}
			r.MustStop()

			restored := restore(t, site, dir, database()...)
			r = restored.MustServe()
			again(t, r, append(said, before...))
			unknown(t, r, after)
			r.MustStop()
			if report := restored.Verify(); !report.OK {
				t.Errorf("%+v", report)
			}
		})
	}
}

// unknown demands that requests are new to a server.
func unknown(t *testing.T, r *apptest.Running, said []conversation.Exchange) {
	t.Helper()
	for _, e := range said {
		now, replayed, err := client(r).Send(t.Context(), e)
		if err != nil || replayed || strings.Contains(now.Answer, `"duplicates":1`) || now.Status != e.Status {
			t.Fatalf("%s is not new: %d %s %v", e, now.Status, now.Answer, err)
		}
	}
}

// A folder that nobody serves, left by a killed process or as it should be, is
// copied as it is.
func TestAStoppedFolderIsCopied(t *testing.T) {
	t.Parallel()
	site := apptest.New(t)
	r := site.MustServe()
	said, err := conversation.Talk(t.Context(), client(r), time.Now(), 8)
	if err != nil {
		t.Fatal(err)
	}
	r.MustStop()
	dir, report := backup(t, site)
	if report.Online {
		t.Error("nobody was there to ask")
	}
	again(t, restore(t, site, dir).MustServe(), said)
	again(t, site.MustServe(), said)
}

// restoreInto restores into a folder and returns the error.
func restoreInto(t *testing.T, from, data string, database config.DatabaseURL) error {
	t.Helper()
	_, err := app.Restore(t.Context(), app.RestoreParams{From: from, Data: data, Database: database, Log: apptest.Discard})
	return err
}
