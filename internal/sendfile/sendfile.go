// Package sendfile owns the way of a file into intake: it reads CSV and JSON
// lines, plain or gzip, turns each line into an item of POST /v1/track with an
// event id that is the same each time, and sends batches in order, one
// request at a time, by the rules of package retry. It never keeps state on
// disk: what makes a repeated or resumed run harmless is the ids alone.
//
// # Ids
//
// The id of a line is taken from a chain of SHA-256 sums over the content:
// the sum of a record covers the sum of the record before it, the CSV header
// being the first, and the first 16 bytes become a UUID of version 8. So
//
//   - the same content gives the same ids under any name, gzipped or not,
//     from a file or from standard input, whole or resumed, in batches of any
//     size and with any column mapping;
//   - the id of a line depends on the lines up to it only: standard input is
//     never read to its end first, and lines appended to a file leave the ids
//     of the old ones as they were;
//   - equal lines of one file are different events;
//   - a line changed, added or removed gives new ids to itself and to all
//     lines after it; a file that will be edited needs ids of its own;
//   - two files that begin with the same lines share the ids of those lines.
//     Where that is not wanted, as when one file is sent twice for two kinds
//     of events, a seed makes them different.
//
// What is hashed are the cells of a CSV record as read and a JSON line
// without white space around it, so that line endings, quoting, blank lines,
// a byte order mark and a missing last newline change nothing.
//
// # What is decided here and what by the server
//
// A line that cannot become an item (not JSON, not UTF-8, another number of
// cells than the header, over 64 KiB) is rejected here with the code that the
// server would use and counted with the others; a broken CSV quote ends the
// reading, because nothing after it can be trusted. Everything else is sent
// as it is and judged by the server.
//
// No request carries sent_at: the times of a file were not read from the
// clock of the machine that sends it, so its skew must not be applied.
package sendfile

import (
	"fmt"

	"github.com/actionpulse/actionpulse/api"
)

// The limits of intake that the sender keeps to, in bytes of JSON.
const (
	// MaxItem is the largest item; one larger is rejected here.
	MaxItem = 64 << 10
	// MaxBody is the largest request body.
	MaxBody = 1 << 20
	// MaxBatch is the largest number of items in a request.
	MaxBatch = 1000
)

// maxRecord is the longest single record that is read, in bytes. It bounds
// memory when a quote is never closed or a file is not what it seems.
const maxRecord = 16 << 20

// Item is one line of the input.
type Item struct {
	// Source and Line say where it began; lines count from 1, a CSV header
	// included.
	Source string
	Line   int
	// EventID is the id it is sent with; empty if the line has one of its own
	// that is not a string.
	EventID string
	// JSON is the item as it is sent. It is nil if Code is set.
	JSON []byte
	// Code and Message are set if the line was rejected before sending.
	Code    api.RejectCode
	Message string
}

// Rejected is an item that was not accepted, by the server or before.
type Rejected struct {
	Source  string         `json:"source"`
	Line    int            `json:"line"`
	EventID string         `json:"event_id"`
	Code    api.RejectCode `json:"code"`
	Message string         `json:"message"`
}

func (r Rejected) String() string {
	id := r.EventID
	if id == "" {
		id = "none"
	}
	return fmt.Sprintf("%s:%d: %s: %s (event_id %s)", r.Source, r.Line, r.Code, r.Message, id)
}

// InputError says that the input cannot be read, or not further.
type InputError struct {
	Source string
	// Line is where it went wrong, 0 if that is not one line.
	Line int
	Err  error
}

func (e *InputError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Source, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Source, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// SetupError says that the input and the options do not fit together: a
// column that is not there, say. Nothing of the input was read as an item.
type SetupError struct {
	Source string
	Err    error
}

func (e *SetupError) Error() string { return fmt.Sprintf("%s: %v", e.Source, e.Err) }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }
