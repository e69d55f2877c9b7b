package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// newDatabase makes a database on a server and returns its address.
func newDatabase(ctx context.Context, server, name string) (string, error) {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	address, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("read the address of PostgreSQL: %w", err)
	}
	address.Path = "/" + name
	return address.String(), nil
}
