package sendfile

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode"

	"github.com/actionpulse/actionpulse/api"
)

// Format is the form of an input.
type Format string

// The formats.
const (
	// FormatAuto is JSONL if the first character that is not white space is
	// a brace, and CSV otherwise.
	FormatAuto  Format = "auto"
	FormatCSV   Format = "csv"
	FormatJSONL Format = "jsonl"
)

// Options say how an input is read.
type Options struct {
	// Format is the form; empty means FormatAuto.
	Format  Format
	Mapping Mapping
	// Seed is mixed into the derived ids.
	Seed string
}

// Reader reads the items of one input.
type Reader struct {
	source string
	rows   rows
}

// rows is a format: it returns items without their source until io.EOF.
type rows interface {
	next() (Item, error)
}

// lineError is an error that knows its line.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }

// NewReader recognises gzip and the format by content and reads the header of
// a CSV. source is the name used in messages. It returns a *SetupError if
// input and options do not fit, an *InputError if the input cannot be read.
func NewReader(source string, in io.Reader, o Options) (*Reader, error) {
	text, err := open(in)
	if err != nil {
		return nil, &InputError{Source: source, Err: err}
	}
	format := o.Format
	if format == "" || format == FormatAuto {
		if format, err = detect(text); err != nil {
			return nil, &SetupError{Source: source, Err: err}
		}
	}
	if format == FormatJSONL {
		if !o.Mapping.IsZero() {
			return nil, &SetupError{Source: source, Err: errors.New("columns and event names are for CSV: a JSON line is an item already")}
		}
		return &Reader{source: source, rows: newJSONL(text, o)}, nil
	}
	rows, err := newCSV(text, o)
	if setup, ok := errors.AsType[*SetupError](err); ok {
		setup.Source = source
		return nil, setup
	}
	if err != nil {
		return nil, inputError(source, err)
	}
	return &Reader{source: source, rows: rows}, nil
}

func inputError(source string, err error) *InputError {
	wrapped := &InputError{Source: source, Err: err}
	if l, ok := errors.AsType[*lineError](err); ok {
		wrapped.Line = l.line
	}
	return wrapped
}

// Next returns the next item, io.EOF after the last, and an *InputError if
// the input cannot be read further. An item over MaxItem comes back rejected.
func (r *Reader) Next() (Item, error) {
	item, err := r.rows.next()
	if errors.Is(err, io.EOF) {
		return Item{}, io.EOF
	}
	if err != nil {
		return Item{}, inputError(r.source, err)
	}
	item.Source = r.source
	if len(item.JSON) > MaxItem {
		item.Code = api.RejectEventTooLarge
		item.Message = fmt.Sprintf("the item has %d bytes, the limit is %d", len(item.JSON), MaxItem)
		item.JSON = nil
	}
	return item, nil
}

// open undoes gzip and drops a byte order mark.
func open(in io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReader(in)
	magic, err := peek(text, 2)
	if err != nil {
		return nil, err
	}
	if magic == "\x1f\x8b" {
		inflated, err := gzip.NewReader(text)
		if err != nil {
			return nil, fmt.Errorf("reading gzip: %w", err)
		}
		text = bufio.NewReader(inflated)
	}
	mark, err := peek(text, 3)
	if err != nil {
		return nil, err
	}
	switch {
	case mark == "\xef\xbb\xbf":
		_, err = text.Discard(len(mark))
	case len(mark) >= 2 && (mark[:2] == "\xff\xfe" || mark[:2] == "\xfe\xff"):
		err = errors.New("the text is UTF-16: convert it to UTF-8")
	}
	return text, err
}

// peek returns up to n bytes, fewer only at the end of the input.
func peek(r *bufio.Reader, n int) (string, error) {
	b, err := r.Peek(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(b), nil
}

// detect looks at the first character that is not white space.
func detect(text *bufio.Reader) (Format, error) {
	for n := 1; ; n++ {
		b, err := text.Peek(n)
		if len(b) < n {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
				return "", err
			}
			return FormatCSV, nil
		}
		switch c := b[n-1]; {
		case c == '{':
			return FormatJSONL, nil
		case c == '[':
			return "", errors.New("a JSON array cannot be sent: write one object a line")
		case !unicode.IsSpace(rune(c)):
			return FormatCSV, nil
		}
	}
}

// limiter fails a record that does not end within maxRecord bytes.
type limiter struct {
	r    io.Reader
	left int
}

// renew is called before each record.
func (l *limiter) renew() { l.left = maxRecord }

func (l *limiter) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a record is longer than %d bytes: is a quote never closed?", maxRecord)
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}
