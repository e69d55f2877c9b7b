package sendfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Mapping names the CSV columns that become members of an item. An empty name
// stands for the column named like the member (event, user_id, anon_id,
// session_id, ts, event_id), if there is one; a name that is given must be
// there. Every other column becomes a property.
type Mapping struct {
	Event, User, Anon, Session, TS, ID string
	// EventName, if set, is the name of every event, in place of a column.
	EventName string
	// Location is the time zone of times without an offset; nil means UTC.
	Location *time.Location
}

// IsZero reports whether nothing is mapped by name.
func (m Mapping) IsZero() bool {
	m.Location = nil
	return m == Mapping{}
}

// columns is a mapping resolved against a header: places in a record, -1 for
// none.
type columns struct {
	event, user, anon, session, ts, id int
	// properties are the columns that become properties, in order.
	properties []property
	count      int
}

type property struct {
	place int
	// key is the name in JSON with its colon.
	key string
}

// resolve finds the columns of a mapping in a header.
func (m Mapping) resolve(header []string) (columns, error) {
	c := columns{count: len(header)}
	used := make([]bool, len(header))
	var faults []error
	find := func(option, column, fallback string) int {
		i, err := findColumn(header, option, column, fallback)
		if err != nil {
			faults = append(faults, err)
		} else if i >= 0 {
			used[i] = true
		}
		return i
	}
	c.event = -1
	if m.EventName == "" {
		c.event = find("event", m.Event, "event")
	}
	c.user = find("user", m.User, "user_id")
	c.anon = find("anon", m.Anon, "anon_id")
	c.session = find("session", m.Session, "session_id")
	c.ts = find("ts", m.TS, "ts")
	c.id = find("id", m.ID, "event_id")
	if len(faults) > 0 {
		return c, fmt.Errorf("%w; the columns are %s", errors.Join(faults...), strings.Join(header, ", "))
	}
	if err := c.complete(m); err != nil {
		return c, fmt.Errorf("%w; the columns are %s", err, strings.Join(header, ", "))
	}
	return c, c.rest(header, used)
}

// complete refuses a mapping by which every row would be rejected.
func (c *columns) complete(m Mapping) error {
	if c.event < 0 && m.EventName == "" {
		return errors.New("no column named event: name one with --event, or all events with --event-name")
	}
	if c.user < 0 && c.anon < 0 {
		return errors.New("no column named user_id or anon_id: name one with --user or --anon")
	}
	return nil
}

// rest makes properties of the columns that are not used otherwise.
func (c *columns) rest(header []string, used []bool) error {
	seen := map[string]bool{}
	for i, name := range header {
		if used[i] {
			continue
		}
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("the name of column %d is not UTF-8", i+1)
		}
		if seen[name] {
			return fmt.Errorf("two columns are named %s", name)
		}
		seen[name] = true
		c.properties = append(c.properties, property{place: i, key: quote(name) + ":"})
	}
	return nil
}

// findColumn returns the place of a column, or of the fallback if no column
// was asked for; -1 if there is no fallback either.
func findColumn(header []string, option, column, fallback string) (int, error) {
	name := column
	if name == "" {
		name = fallback
	}
	i := slices.Index(header, name)
	switch {
	case i < 0 && column != "":
		return -1, fmt.Errorf("no column named %s (--%s)", column, option)
	case i >= 0 && slices.Contains(header[i+1:], name):
		return -1, fmt.Errorf("two columns are named %s (--%s)", name, option)
	}
	return i, nil
}
