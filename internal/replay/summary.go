package replay

import (
	"strconv"
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

// summarize says what the events of a chunk show, by the client's clock; a chunk
// without a time is that of its receipt. What is not spelt as rrweb
// spells it is no page, error or click.
func summarize(events [][]byte, received time.Time) Summary {
	s := summing{}
	for _, one := range events {
		s.add(one)
	}
	out := Summary{Events: int64(len(events)), Pages: s.pages, Errors: s.errors, Clicks: s.clicks}
	out.StartedAt, out.EndedAt = received, received
	if s.first != 0 {
		out.StartedAt, out.EndedAt = time.UnixMilli(s.first).UTC(), time.UnixMilli(s.last).UTC()
	}
	return out
}

// summing is a summary in the making.
type summing struct {
	// first and last are in milliseconds since 1970, 0 if no event has a time.
	first, last           int64
	pages, errors, clicks int64
	// href is the page that was come to last.
	href string
}

func (s *summing) add(event jsontext.Value) {
	members := membersOf(event, "type", "timestamp", "data")
	if ms, err := strconv.ParseFloat(string(members["timestamp"]), 64); err == nil && ms >= firstMillis && ms <= lastMillis {
		at := int64(ms)
		if s.first == 0 || at < s.first {
			s.first = at
		}
		s.last = max(s.last, at)
	}
	switch data := members["data"]; string(members["type"]) {
	case typeMeta:
		s.meta(data)
	case typePlugin:
		s.plugin(data)
	case typeCustom:
		if textOf(membersOf(data, "tag")["tag"]) == errorWord {
			s.errors++
		}
	case typeIncremental:
		of := membersOf(data, "source", "type")
		if string(of["source"]) == sourceMouseInteraction && string(of["type"]) == mouseClick {
			s.clicks++
		}
	}
}

// meta counts a page. rrweb names the page before each snapshot of it: the same
// again is no other page.
func (s *summing) meta(data jsontext.Value) {
	href := textOf(membersOf(data, "href")["href"])
	if href != "" && href != s.href {
		s.pages++
		s.href = href
	}
}

// plugin counts what was logged as an error.
func (s *summing) plugin(data jsontext.Value) {
	of := membersOf(data, "plugin", "payload")
	name := textOf(of["plugin"])
	if len(name) < len(consolePlugin) || name[:len(consolePlugin)] != consolePlugin {
		return
	}
	if textOf(membersOf(of["payload"], "level")["level"]) == errorWord {
		s.errors++
	}
}

// membersOf returns the named members of a value; none if it is no object.
func membersOf(value jsontext.Value, names ...string) map[string]jsontext.Value {
	found := make(map[string]jsontext.Value, len(names))
	if value.Kind() != '{' {
		return found
	}
	// It was found valid before, so that reading it does not fail.
	_ = eachMember(value, func(name string, member jsontext.Value) {
		for _, wanted := range names {
			if name == wanted {
				found[name] = member
			}
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
