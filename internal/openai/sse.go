package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// errTooLarge is returned for more than is read of a stream.
var errTooLarge = errors.New("the stream is too large")

// events reads server-sent events.
type events struct {
	lines *bufio.Scanner
	raw   *io.LimitedReader
	begun bool
}

func newEvents(body io.Reader) *events {
	e := &events{raw: &io.LimitedReader{R: body, N: maxStream}}
	e.lines = bufio.NewScanner(e.raw)
	e.lines.Buffer(nil, maxEvent)
	e.lines.Split(splitLine)
	return e
}

// next returns the data of the next event that has some; its lines are joined.
// At the end of the stream it returns io.EOF: an event that ends with the
// stream counts. Comments and other fields are passed over.
func (e *events) next() (string, error) {
	var data []string
	size := 0
	for e.lines.Scan() {
		line := e.lines.Text()
		if !e.begun {
			line, e.begun = strings.TrimPrefix(line, "\ufeff"), true
		}
		if line == "" {
			if data != nil {
				return strings.Join(data, "\n"), nil
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		if name != "data" {
			continue
		}
		if size += len(value); size > maxEvent {
			return "", errTooLarge
		}
		data = append(data, strings.TrimPrefix(value, " "))
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong), err == nil && e.raw.N <= 0:
		return "", errTooLarge
	case err != nil:
		return "", err
	case data != nil:
		return strings.Join(data, "\n"), nil
	default:
		return "", io.EOF
	}
}

// splitLine splits at "\n", "\r\n" and "\r".
func splitLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case i < 0:
		return 0, nil, nil
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data):
		if data[i+1] == '\n' {
			return i + 2, data[:i], nil
		}
		return i + 1, data[:i], nil
	case atEOF:
		return i + 1, data[:i], nil
	default:
		return 0, nil, nil // what follows "\r" is not known yet
	}
}
