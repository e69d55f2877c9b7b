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

// firstWithStrategies is the version of the first server that can be told how
// to copy.
const firstWithStrategies = 150000

// shared is the test binary's server.
var shared struct {
	once sync.Once
	url  *url.URL
	err  error
	// copying is what CREATE DATABASE is told about how to copy.
	copying string
	server  *server
	// templates are the databases that the end of the tests drops.
	mu        sync.Mutex
	templates []string
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

// Stop stops the server that the tests have started, or drops the templates
// that they have made on another, for packages whose TestMain has more to do.
func Stop() error {
	if shared.server != nil {
		return shared.server.stop()
	}
	var errs []error
	for _, name := range shared.templates {
		errs = append(errs, drop(name))
	}
	return errors.Join(errs...)
}

// New returns the URL of a new, empty database, which is dropped when the test
// ends. It fails the test when there is no server and none can be started.
func New(t testing.TB) string {
	t.Helper()
	connect(t)
	return newCopy(t, "template0")
}

// connect fails the test when there is no server.
func connect(t testing.TB) {
	t.Helper()
	shared.once.Do(func() {
		if shared.url, shared.err = connectOrStart(); shared.err == nil {
			shared.copying, shared.err = copying()
		}
	})
	if shared.err != nil {
		t.Fatalf("this test needs PostgreSQL: %v\nInstall it (apt-get install postgresql) or set %s to a server's URL.",
			shared.err, URLVariable)
	}
}

// newCopy returns the URL of a copy of a database.
func newCopy(t testing.TB, of string) string {
	t.Helper()
	name, err := create(of)
	if err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return address(name)
}

// create makes a database with a new name, a copy of another.
func create(of string) (name string, err error) {
	name = "actionpulse_test_" + strings.ToLower(rand.Text())
	return name, command("CREATE DATABASE " + name + " TEMPLATE " + of + " ENCODING 'UTF8'" + shared.copying)
}

func drop(name string) error { return command("DROP DATABASE " + name + " WITH (FORCE)") }

func address(name string) string {
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

// copying has a database copied file by file where the server knows other ways
// too: those write every page to the log, which takes five times as long.
func copying() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, shared.url.String())
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	var version int
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version)
	if err := errors.Join(err, conn.Close(ctx)); err != nil || version < firstWithStrategies {
		return "", err
	}
	return " STRATEGY FILE_COPY", nil
}

// command runs one statement on a connection of its own.
func command(sql string) error { return run(shared.url.String(), sql) }

// run runs statements on a connection of their own. It does not use the test's
// context, which has ended when cleanups run.
func run(url, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
