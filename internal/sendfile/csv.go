package sendfile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
)

// csvRows reads the rows of a CSV input whose first record is the header.
type csvRows struct {
	csv     *csv.Reader
	limit   *limiter
	chain   *chain
	columns columns
	// eventName is the JSON of the one name of all events, or empty.
	eventName string
	location  *time.Location
}

// newCSV reads the header and finds the mapped columns in it. An input without
// any record has no rows and no faults. If the mapping does not fit, the error
// is a *SetupError without its source.
func newCSV(r io.Reader, o Options) (*csvRows, error) {
	limit := &limiter{r: r}
	rows := &csvRows{csv: csv.NewReader(limit), limit: limit, chain: newChain(o.Seed), location: o.Mapping.Location}
	rows.csv.FieldsPerRecord = -1
	rows.csv.ReuseRecord = true
	if rows.location == nil {
		rows.location = time.UTC
	}
	limit.renew()
	header, err := rows.csv.Read()
	if errors.Is(err, io.EOF) {
		return rows, nil
	}
	if err != nil {
		return nil, csvError(err)
	}
	rows.chain.next(header...)
	if err := rows.bind(header, o.Mapping); err != nil {
		return nil, &SetupError{Err: err}
	}
	return rows, nil
}

func (c *csvRows) bind(header []string, m Mapping) (err error) {
	if !utf8.ValidString(m.EventName) {
		return errors.New("the event name is not UTF-8")
	}
	if m.EventName != "" {
		c.eventName = quote(m.EventName)
	}
	c.columns, err = m.resolve(header)
	return err
}

// next returns the next row, io.EOF after the last.
func (c *csvRows) next() (Item, error) {
	c.limit.renew()
	cells, err := c.csv.Read()
	if err != nil {
		return Item{}, csvError(err)
	}
	line, _ := c.csv.FieldPos(0)
	item := Item{Line: line, EventID: c.chain.next(cells...)}
	if len(cells) != c.columns.count {
		item.Code = api.RejectInvalidEvent
		item.Message = fmt.Sprintf("the line has %d cells where the header has %d", len(cells), c.columns.count)
		return item, nil
	}
	if c.columns.id >= 0 && cells[c.columns.id] != "" {
		item.EventID = cells[c.columns.id]
	}
	for i, cell := range cells {
		if !utf8.ValidString(cell) {
			item.EventID = strings.ToValidUTF8(item.EventID, "\uFFFD")
			item.Code = api.RejectInvalidEvent
			item.Message = fmt.Sprintf("cell %d is not UTF-8", i+1)
			return item, nil
		}
	}
	item.JSON = c.encode(item.EventID, cells)
	return item, nil
}

// encode builds the item of a row. Empty cells are left out.
func (c *csvRows) encode(id string, cells []string) []byte {
	b := appendQuoted([]byte(`{"event_id":`), id)
	if c.eventName != "" {
		b = append(append(b, `,"event":`...), c.eventName...)
	}
	member := func(name string, place int) {
		if place >= 0 && cells[place] != "" {
			b = appendQuoted(append(b, name...), cells[place])
		}
	}
	member(`,"event":`, c.columns.event)
	member(`,"anon_id":`, c.columns.anon)
	member(`,"user_id":`, c.columns.user)
	member(`,"session_id":`, c.columns.session)
	if i := c.columns.ts; i >= 0 && cells[i] != "" {
		b = append(append(b, `,"ts":`...), formatTS(cells[i], c.location)...)
	}
	before := `,"properties":{`
	for _, p := range c.columns.properties {
		if cells[p.place] == "" {
			continue
		}
		b = append(append(b, before...), p.key...)
		b = appendQuoted(b, cells[p.place])
		before = ","
	}
	if before == "," {
		b = append(b, '}')
	}
	return append(b, '}')
}

// csvError puts the line of a syntax error into its place.
func csvError(err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return &lineError{line: p.StartLine, err: fmt.Errorf("the CSV is broken at line %d, column %d: %w", p.Line, p.Column, p.Err)}
	}
	return err
}

// quote returns valid UTF-8 text as a JSON string.
func quote(s string) string { return string(appendQuoted(nil, s)) }

// appendQuoted appends text as a JSON string. Its callers have checked the
// text; invalid UTF-8, the only thing AppendQuote reports, is replaced.
func appendQuoted(b []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(b, s)
	if err != nil {
		return appendQuoted(b, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return quoted
}
