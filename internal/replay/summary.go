package replay

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Types of rrweb's events that a summary looks at, and what they say.
const (
	typeIncremental = "3"
	typeMeta        = "4"
	typeCustom      = "5"
	typePlugin      = "6"

	sourceMouseInteraction = "2"
	mouseClick             = "2"
	// consolePlugin begins the name of the plugin that records the console.
	consolePlugin = "rrweb/console"
	// errorWord is the level of a console event, or the tag of a custom one.
	errorWord = "error"
)

// Bounds of the times that are believed: the years 2000 to 9999.
const (
	firstMillis = 946_684_800_000
	lastMillis  = 253_402_300_799_999
)

// errNot is why a value is not what it must be.
var errNot = errors.New("is not what it must be")

// summing sums up what the events of a chunk show while they are read, and
// holds none of them. What is not spelt as rrweb spells it is no page, error or
// click.
type summing struct {
	// first and last are in milliseconds since 1970, 0 if no event has a time.
	first, last                   int64
	events, pages, errors, clicks int64
	// href is the page that was come to last.
	href string
	// parts reads within events.
	parts partReader
}

// summary says what was seen, by the client's clock; a chunk without a time is
// that of its receipt.
func (s *summing) summary(received time.Time) Summary {
	out := Summary{StartedAt: received, EndedAt: received, Events: s.events, Pages: s.pages, Errors: s.errors, Clicks: s.clicks}
	if s.first != 0 {
		out.StartedAt, out.EndedAt = time.UnixMilli(s.first).UTC(), time.UnixMilli(s.last).UTC()
	}
	return out
}

// read reads the events, which were found valid. It returns an error unless
// they are an array of objects.
func (s *summing) read(events jsontext.Value) error {
	if events.Kind() != '[' {
		return errNot
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(events))
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '{' {
		one, err := dec.ReadValue()
		if err != nil {
			return err
		}
		s.add(one)
	}
	if dec.PeekKind() != ']' {
		return errNot
	}
	return nil
}

func (s *summing) add(event jsontext.Value) {
	s.events++
	of := s.parts.of(event, "type", "timestamp", "data")
	s.time(of[1])
	switch data := of[2]; string(of[0]) {
	case typeMeta:
		s.meta(data)
	case typePlugin:
		s.plugin(data)
	case typeCustom:
		if textOf(s.parts.of(data, "tag")[0]) == errorWord {
			s.errors++
		}
	case typeIncremental:
		of := s.parts.of(data, "source", "type")
		if string(of[0]) == sourceMouseInteraction && string(of[1]) == mouseClick {
			s.clicks++
		}
	}
}

func (s *summing) time(value jsontext.Value) {
	if ms, err := strconv.ParseFloat(string(value), 64); err == nil && ms >= firstMillis && ms <= lastMillis {
		at := int64(ms)
		if s.first == 0 || at < s.first {
			s.first = at
		}
		s.last = max(s.last, at)
	}
}

// meta counts a page. rrweb names the page before each snapshot of it: the same
// again is no other page.
func (s *summing) meta(data jsontext.Value) {
	href := textOf(s.parts.of(data, "href")[0])
	if href != "" && href != s.href {
		s.pages++
		s.href = href
	}
}

// plugin counts what was logged as an error.
func (s *summing) plugin(data jsontext.Value) {
	of := s.parts.of(data, "plugin", "payload")
	if !strings.HasPrefix(textOf(of[0]), consolePlugin) {
		return
	}
	if textOf(s.parts.of(of[1], "level")[0]) == errorWord {
		s.errors++
	}
}

// partReader finds members of objects with one decoder.
type partReader struct {
	buffer bytes.Buffer
	dec    *jsontext.Decoder
}

// mostParts is how many members are asked for at once, at most.
const mostParts = 3

// of returns the named members of a value, which are parts of it, in the order
// of the names; none if it is no object.
func (p *partReader) of(value jsontext.Value, names ...string) (found [mostParts]jsontext.Value) {
	if value.Kind() != '{' {
		return found
	}
	p.buffer = *bytes.NewBuffer(value)
	if p.dec == nil {
		p.dec = jsontext.NewDecoder(&p.buffer)
	} else {
		p.dec.Reset(&p.buffer)
	}
	// It was found valid before, so that reading it does not fail.
	_ = eachMemberOf(p.dec, value, func(name string, member jsontext.Value) {
		if i := slices.Index(names, name); i >= 0 {
			found[i] = member
		}
	})
	return found
}

// textOf returns what a JSON string says, empty if value is none.
func textOf(value jsontext.Value) string {
	if value.Kind() != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}
