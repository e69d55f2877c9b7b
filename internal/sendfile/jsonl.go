package sendfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
)

// jsonLines reads an input with one item object a line.
type jsonLines struct {
	lines *bufio.Reader
	limit *limiter
	chain *chain
	line  int
}

func newJSONL(r io.Reader, o Options) *jsonLines {
	limit := &limiter{r: r}
	return &jsonLines{lines: bufio.NewReader(limit), limit: limit, chain: newChain(o.Seed)}
}

// next returns the next line that is not blank, io.EOF after the last.
func (j *jsonLines) next() (Item, error) {
	for {
		j.limit.renew()
		raw, err := j.lines.ReadBytes('\n')
		if err != nil && (!errors.Is(err, io.EOF) || len(raw) == 0) {
			return Item{}, err
		}
		j.line++
		if text := bytes.TrimSpace(raw); len(text) > 0 {
			return j.item(text), nil
		}
	}
}

// item makes an item of a line. A line that is not JSON is rejected, since it
// would spoil the request for the others; JSON that is not an object is sent
// and rejected by the server.
func (j *jsonLines) item(text []byte) Item {
	item := Item{Line: j.line, EventID: j.chain.next(string(text))}
	value := jsontext.Value(text)
	if err := value.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(false)); err != nil {
		item.Code = api.RejectInvalidEvent
		item.Message = fmt.Sprintf("the line is not JSON in UTF-8: %v", err)
		return item
	}
	if value.Kind() != '{' {
		item.EventID = ""
		item.JSON = value
		return item
	}
	item.JSON, item.EventID = withID(value, item.EventID)
	return item
}

// withID returns the object with its own event_id, if it has one that is not
// null, and that id if it is a string; else with the derived id. The object
// is valid and compact.
func withID(object jsontext.Value, derived string) ([]byte, string) {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	member := `"event_id":"` + derived + `"`
	if _, err := d.ReadToken(); err != nil {
		return object, ""
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return object, ""
		}
		own := name.String() == "event_id"
		value, err := d.ReadValue()
		if err != nil {
			return object, ""
		}
		switch {
		case !own:
		case value.Kind() == 'n':
			end := d.InputOffset()
			return bytes.Join([][]byte{object[:end-int64(len("null"))], []byte(`"` + derived + `"`), object[end:]}, nil), derived
		default:
			return object, stringOf(value)
		}
	}
	if len(object) > len("{}") {
		member += ","
	}
	return bytes.Join([][]byte{object[:1], []byte(member), object[1:]}, nil), derived
}

// stringOf returns the text of a JSON string, "" for another value.
func stringOf(v jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(text)
}
