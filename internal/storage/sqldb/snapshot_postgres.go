package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5/stdlib"
)

// The programs of PostgreSQL that write and load dumps. Their version must be
// the server's or newer.
const (
	dumpTool = "pg_dump"
	loadTool = "pg_restore"
)

func (p postgresDialect) observer() (*sql.DB, error) {
	pool := stdlib.OpenDB(*p.config.Copy())
	pool.SetMaxOpenConns(1)
	return pool, nil
}

// snapshot begins a transaction that pg_dump can join. It ends with the
// connection.
func (postgresDialect) snapshot(ctx context.Context, conn *sql.Conn) (name string, err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return "", err
	}
	err = conn.QueryRowContext(ctx, "SELECT pg_export_snapshot()").Scan(&name)
	return name, err
}

func (p postgresDialect) copySnapshot(ctx context.Context, from *Snapshot, c CopyParams) error {
	return runTool(ctx, p.config.ConnString(), c.Tool, dumpTool,
		"--format=custom", "--no-owner", "--no-privileges", "--snapshot="+from.name, "--file="+c.Path)
}

// loadDump loads all of a dump or nothing.
func loadDump(ctx context.Context, p LoadParams) error {
	return runTool(ctx, p.URL, p.Tool, loadTool,
		"--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", p.Path)
}

// runTool runs a program of PostgreSQL on a database. The password is not among
// its arguments, which everybody on the machine can read.
func runTool(ctx context.Context, address, path, name string, args ...string) error {
	if path == "" {
		path = name
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return fmt.Errorf("%s is needed for a database of PostgreSQL and was not found: install PostgreSQL's client programs, or say where it is: %w", name, err)
	}
	address, password, err := withoutPassword(address)
	if err != nil {
		return err
	}
	var said bytes.Buffer
	command := exec.CommandContext(ctx, found, append([]string{"--dbname=" + address, "--no-password"}, args...)...) //nolint:gosec // a program of PostgreSQL, found where its operator says
	command.Env = os.Environ()
	if password != "" {
		command.Env = append(command.Env, "PGPASSWORD="+password)
	}
	command.Stderr = &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// withoutPassword takes the password out of a URL.
func withoutPassword(address string) (rest, password string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errors.New("the database URL is malformed")
	}
	if u.User != nil {
		password, _ = u.User.Password()
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	if given := query.Get("password"); given != "" {
		password = given
		query.Del("password")
		u.RawQuery = query.Encode()
	}
	return u.String(), password, nil
}
