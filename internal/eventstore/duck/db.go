// Package duck is a thin layer over DuckDB's C interface for the event store:
// a database, connections whose calls end when their context does, results
// read without boxing, and an appender that writes columns in place. It knows
// nothing of events and decides nothing; every statement comes from its caller.
//
// It exists because database/sql would cost the writer more time per row than
// DuckDB itself: each value boxed, each string passed through its own call.
package duck

import (
	"errors"
	"fmt"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// DB is an open database. It is safe for use from several goroutines.
type DB struct {
	handle bindings.Database
}

// LibraryVersion returns the version of the DuckDB library, like "v1.4.0".
func LibraryVersion() string { return bindings.LibraryVersion() }

// Setting is one of DuckDB's options by name.
type Setting struct{ Name, Value string }

// Open opens or creates the database file at path with the given settings,
// applied in order: some forbid others after them. An unknown setting or a bad
// value of one is an error.
func Open(path string, settings []Setting) (*DB, error) {
	var config bindings.Config
	if bindings.CreateConfig(&config) == bindings.StateError {
		return nil, fmt.Errorf("create configuration for %s", path)
	}
	defer bindings.DestroyConfig(&config)
	for _, s := range settings {
		if bindings.SetConfig(config, s.Name, s.Value) == bindings.StateError {
			return nil, fmt.Errorf("unknown or invalid setting %s=%s", s.Name, s.Value)
		}
	}
	db := &DB{}
	var message string
	if bindings.OpenExt(path, &db.handle, config, &message) == bindings.StateError {
		bindings.Close(&db.handle)
		return nil, &Error{Type: bindings.ErrorTypeErrorIO, Message: message}
	}
	return db, nil
}

// Close releases the database. Every connection must have been closed before;
// the last one to go writes a checkpoint if there is anything to write.
func (db *DB) Close() { bindings.Close(&db.handle) }

// Connect opens a connection, which one goroutine at a time may use.
func (db *DB) Connect() (*Conn, error) {
	c := &Conn{}
	if bindings.Connect(db.handle, &c.handle) == bindings.StateError {
		return nil, errors.New("connect to the database")
	}
	return c, nil
}
