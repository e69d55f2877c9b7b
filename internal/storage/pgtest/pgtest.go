// Package pgtest gives tests a real PostgreSQL: one private server for each
// test binary, started when the first test asks, and a fresh database for each
// test. Where TEST_DATABASE_URL is set, that server is used instead. A test
// that cannot have one fails; it is never skipped.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// URLVariable names the environment variable with the URL of a server to use.
// Its user must be allowed to create databases.
const URLVariable = "TEST_DATABASE_URL"

// commandTimeout limits creating and dropping a database.
const commandTimeout = time.Minute

// shared is the test binary's server.
var shared struct {
	once   sync.Once
	url    *url.URL
	err    error
	server *server
}

// Main runs a package's tests and stops the server they started, if any. It
// is to be called by TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Stop stops the server that the tests have started, if any, for packages whose
// TestMain has more to do.
func Stop() error {
	if shared.server == nil {
		return nil
	}
	return shared.server.stop()
}

// New returns the URL of a new, empty database, which is dropped when the test
// ends. It fails the test when there is no server and none can be started.
func New(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() { shared.url, shared.err = connectOrStart() })
	if shared.err != nil {
		t.Fatalf("this test needs PostgreSQL: %v\nInstall it (apt-get install postgresql) or set %s to a server's URL.",
			shared.err, URLVariable)
	}
	name := "actionpulse_test_" + strings.ToLower(rand.Text())
	if err := command("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := command("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	u := *shared.url
	u.Path = "/" + name
	return u.String()
}

func connectOrStart() (*url.URL, error) {
	if given := os.Getenv(URLVariable); given != "" {
		u, err := url.Parse(given)
		if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
			return nil, fmt.Errorf("%s is not a URL that begins with postgres://", URLVariable)
		}
		return u, nil
	}
	s, err := startServer(forgetful...)
	if err != nil {
		return nil, err
	}
	shared.server = s
	return s.url(), nil
}

// command runs one statement on a connection of its own. It does not use the
// test's context, which has ended when cleanups run.
func command(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, shared.url.String())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
