package torture_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

// copied is a folder that was talked to and is being backed up and restored.
type copied struct {
	*testing.T

	program program
	address string
	flags   []string
	client  *conversation.Client
	said    []conversation.Exchange
}

// newCopied makes a folder and says something to its server, which goes on.
func newCopied(t *testing.T, flags ...string) (*copied, *process) {
	t.Helper()
	dir := t.TempDir()
	c := &copied{T: t, flags: flags, program: program{
		path: buildBinary(t), data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log"),
	}}
	out := c.program.run(t.Context(), t, nil, append([]string{"init", "--json"}, flags...)...)
	c.client = &conversation.Client{HTTP: http.DefaultClient}
	if err := json.Unmarshal([]byte(out.stdout), &c.client.Credentials); err != nil {
		t.Fatal(out)
	}
	c.address, _ = freeAddresses(t)
	c.client.URL = "http://" + c.address
	server := c.serve(c.program)
	var err error
	if c.said, err = conversation.Talk(t.Context(), c.client, time.Now(), 11); err != nil {
		t.Fatal(err)
	}
	return c, server
}

func (c *copied) serve(on program, extra ...string) *process {
	c.Helper()
	s := on.serve(c.T, c.address, c.flags, extra...)
	if !s.await(c.T) {
		c.Fatalf("the server did not start: %s", s.end(c.T))
	}
	return s
}

// backup makes a backup, which may die at a point.
func (c *copied) backup(dir string, extra ...string) result {
	c.Helper()
	return c.program.run(c.Context(), c.T, extra, append([]string{"backup", "--quiet", "--out", dir}, c.flags...)...)
}

// wantNone demands that a folder is no backup.
func (c *copied) wantNone(dir string) {
	c.Helper()
	into := c.program.on(filepath.Join(c.TempDir(), "none"))
	if r := into.run(c.Context(), c.T, nil, "restore", "--from", dir); r.code != exitRefused || !strings.Contains(r.stderr, "no whole backup") {
		c.Errorf("half a backup is restored: %s", r)
	}
}

// again demands that everything that was said is answered as a repeat.
func (c *copied) again() {
	c.Helper()
	faults, err := c.client.Again(c.Context(), c.said)
	if err := errors.Join(append(faults, err)...); err != nil {
		c.Error(err)
	}
}

// TestBackupUnderFire kills the server, the backup and the restore at each of
// their steps: a backup is whole or none, the server goes on as if there had
// been none, and nothing starts on a folder that was not restored to its end.
func TestBackupUnderFire(t *testing.T) {
	t.Parallel()
	c, server := newCopied(t)
	for _, point := range []string{"backup.copied", "backup.written"} {
		dir := filepath.Join(t.TempDir(), point)
		if r := c.backup(dir, "ACTIONPULSE_CRASH_AT="+point+":1"); !r.killed {
			t.Fatalf("the backup did not die at %s: %s", point, r)
		}
		c.wantNone(dir)
		c.again()
		c.late()
	}
	server.drain(t)
	for _, point := range []string{"backup.held", "backup.checkpointed"} {
		server = c.serve(c.program, "ACTIONPULSE_CRASH_AT="+point+":1")
		dir := filepath.Join(t.TempDir(), point)
		if r := c.backup(dir); r.code == exitOK {
			t.Errorf("the server died at %s, and the backup took no notice: %s", point, r)
		}
		if r := server.end(t); !r.killed {
			t.Fatalf("the server did not die at %s: %s", point, r)
		}
		c.wantNone(dir)
		server = c.serve(c.program)
		if _, err := os.Stat(filepath.Join(c.program.data, "intake.checkpoint")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after a death at %s the copy of the intake store stays: %v", point, err)
		}
		c.again()
		server.drain(t)
	}
	server = c.serve(c.program)
	dir := filepath.Join(t.TempDir(), "backup")
	if r := c.backup(dir); r.code != exitOK {
		t.Fatal(r)
	}
	server.drain(t)
	c.program.verify(t.Context(), t)
	c.restoreUnderFire(dir, nil, "restore.copied", "restore.filled")
}

// late sends events and waits until they can be queried: the server does not
// stand still any more.
func (c *copied) late() {
	c.Helper()
	said, err := c.client.Late(c.Context(), uint64(len(c.said)), 1)
	if err != nil {
		c.Fatal(err)
	}
	c.said = append(c.said, said...)
	for {
		if r := c.program.verify(c.Context(), c.T); r.Backlog == 0 {
			return
		}
	}
}

// restoreUnderFire kills a restore at its steps, and then lets it come to its
// end.
func (c *copied) restoreUnderFire(from string, flags []string, points ...string) {
	c.Helper()
	into := c.program.on(filepath.Join(c.TempDir(), "restored"))
	args := append([]string{"restore", "--quiet", "--from", from}, flags...)
	for _, point := range points {
		if r := into.run(c.Context(), c.T, []string{"ACTIONPULSE_CRASH_AT=" + point + ":1"}, args...); !r.killed {
			c.Fatalf("the restore did not die at %s: %s", point, r)
		}
		s := into.serve(c.T, c.address, flags)
		if s.await(c.T) {
			c.Fatalf("a server starts on a folder whose restore died at %s", point)
		}
		if r := s.end(c.T); r.code != exitRefused || !strings.Contains(r.stderr, "actionpulse restore") {
			c.Errorf("after a death at %s: %s", point, r)
		}
	}
	if r := into.run(c.Context(), c.T, nil, args...); r.code != exitOK {
		c.Fatal(r)
	}
	c.flags = flags
	server := c.serve(into)
	c.again()
	server.drain(c.T)
}

// TestRestoreOnPostgreSQLUnderFire: a database that was being filled is filled
// by the next restore, or was filled by the one that died.
func TestRestoreOnPostgreSQLUnderFire(t *testing.T) {
	t.Parallel()
	address, stop, err := pgtest.StartDurable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "CREATE DATABASE restored TEMPLATE template0")
	if err := errors.Join(err, conn.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	other.Path = "/restored"
	c, server := newCopied(t, "--database", address)
	dir := filepath.Join(t.TempDir(), "backup")
	if r := c.backup(dir); r.code != exitOK {
		t.Fatal(r)
	}
	server.kill(t)
	c.restoreUnderFire(dir, []string{"--database", other.String()}, "restore.noted", "restore.loaded")
}
