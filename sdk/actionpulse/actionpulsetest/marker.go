package actionpulsetest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

// markerKind names markers as a unit of work.
const markerKind = "release_marker"

// The longest of each.
const (
	environmentLimit = 100
	urlLimit         = 2000
	metadataLimit    = 16_384
)

// marker is a release marker.
type marker struct {
	at      time.Time
	wire    api.Marker
	deleted bool
}

// cursor names a marker's place in the list.
func (m *marker) cursor() string { return strconv.FormatInt(m.at.UnixMicro(), 10) + " " + m.wire.ID }

// Markers returns the release markers that are not deleted, in the order in which
// they were made.
func (s *Server) Markers() []api.Marker {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []api.Marker
	for _, m := range s.markers {
		if !m.deleted {
			list = append(list, m.wire)
		}
	}
	return list
}

// deployMarker makes a marker, once for each key.
func (s *Server) deployMarker(x *exchange) (reply, error) {
	if err := s.ownProject(x); err != nil {
		return reply{}, err
	}
	r := s.asked(x, &markerPolicy)
	if result, err := s.judge(x, r); err != nil {
		return reply{}, err
	} else if result != nil {
		return jsonReply(http.StatusOK, s.marker(result.Record.Resource.ID).wire)
	}
	m, err := s.newMarker(x, "deploy")
	if err != nil {
		return reply{}, err
	}
	s.take(r, idempotency.Resource{Kind: markerKind, ID: m.wire.ID}, nil)
	return jsonReply(http.StatusCreated, m.wire)
}

// createMarker makes a marker by hand: a repeat makes a second one.
func (s *Server) createMarker(x *exchange) (reply, error) {
	content, err := decodeMarker(x)
	if err != nil {
		return reply{}, err
	}
	if err := s.ownProject(x); err != nil {
		return reply{}, err
	}
	m, err := s.addMarker(content, "manual")
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusCreated, m.wire)
}

func (s *Server) newMarker(x *exchange, source string) (*marker, error) {
	content, err := decodeMarker(x)
	if err != nil {
		return nil, err
	}
	return s.addMarker(content, source)
}

func decodeMarker(x *exchange) (api.MarkerContent, error) {
	content, err := decode[api.MarkerContent](x)
	if err == nil && content.TS != nil && strings.Contains(*content.TS, ",") {
		err = invalidField("ts", "must be a time as in RFC 3339")
	}
	return content, err
}

// addMarker checks a marker and adds it.
func (s *Server) addMarker(c api.MarkerContent, source string) (*marker, error) {
	now := s.time()
	m := &marker{at: now, wire: api.Marker{
		ID: newID(), ProjectID: s.ProjectID, Version: c.Version, Environment: "production", Commit: some(c.Commit), URL: some(c.URL),
		Title: some(c.Title), Metadata: c.Metadata, Source: source, CreatedAt: api.TimeText(now),
	}}
	if c.Environment != nil {
		m.wire.Environment = *c.Environment
	}
	if c.TS != nil {
		at, err := time.Parse(time.RFC3339, *c.TS)
		if year := at.UTC().Year(); err != nil || year < 1970 || year > 9999 {
			return nil, invalidField("ts", "must be a time as in RFC 3339, from 1970 to 9999")
		}
		m.at = at.UTC().Truncate(time.Microsecond)
	}
	m.wire.TS = api.TimeText(m.at)
	if err := checkMarker(&m.wire); err != nil {
		return nil, err
	}
	s.markers = append(s.markers, m)
	return m, nil
}

// checkMarker refuses with validation_failed. What lengths the tags say was
// checked before.
func checkMarker(m *api.Marker) error {
	for _, one := range []struct {
		name     string
		value    *string
		required bool
	}{{"version", &m.Version, true}, {"environment", &m.Environment, true}, {"commit", m.Commit, false}, {"title", m.Title, false}} {
		if one.value != nil && (hasControl(*one.value) || one.required && strings.TrimSpace(*one.value) == "") {
			return invalidField(one.name, "must be a text without control characters, and not blank")
		}
	}
	if m.URL != nil && !validURL(*m.URL) {
		return invalidField("url", "must be an http or https URL of at most 2,000 bytes")
	}
	size := len("{}")
	for name, value := range m.Metadata {
		size += len(name) + len(value) + len(`"":,`)
	}
	if size > metadataLimit {
		return invalidField("metadata", "holds at most 16384 bytes")
	}
	return nil
}

// some is nil for the empty text.
func some(s *string) *string {
	if s == nil || *s == "" {
		return nil
	}
	return s
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= urlLimit && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) })
}

// ownProject refuses with not_found for a project in the path that is not there.
func (s *Server) ownProject(x *exchange) error {
	if x.pathText("id") != s.ProjectID {
		return refuse(api.CodeNotFound, "there is no such project")
	}
	return nil
}

// marker returns a marker, deleted or not; nil if there is none.
func (s *Server) marker(id string) *marker {
	for _, m := range s.markers {
		if m.wire.ID == id {
			return m
		}
	}
	return nil
}

// markerInPath returns a marker that is not deleted. It refuses with not_found.
func (s *Server) markerInPath(x *exchange) (*marker, error) {
	if err := s.ownProject(x); err != nil {
		return nil, err
	}
	if m := s.marker(x.pathText("marker_id")); m != nil && !m.deleted {
		return m, nil
	}
	return nil, refuse(api.CodeNotFound, "there is no such release marker")
}

func (s *Server) getMarker(x *exchange) (reply, error) {
	m, err := s.markerInPath(x)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, m.wire)
}

// deleteMarker deletes a marker. Its key stays taken.
func (s *Server) deleteMarker(x *exchange) (reply, error) {
	m, err := s.markerInPath(x)
	if err != nil {
		return reply{}, err
	}
	at := api.TimeText(s.time())
	m.deleted, m.wire.DeletedAt = true, &at
	return reply{status: http.StatusNoContent}, nil
}

// listMarkers lists markers, latest first, or tells of the one that a key names.
func (s *Server) listMarkers(x *exchange) (reply, error) {
	key, err := x.text("idempotency_key")
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		return s.markerOfKey(x, key)
	}
	p, err := x.page(func(c string) bool {
		at, id, _ := strings.Cut(c, " ")
		return isNumber(strings.TrimPrefix(at, "-")) && isID(id)
	})
	if err != nil {
		return reply{}, err
	}
	from, err := x.timeIn("from")
	if err != nil {
		return reply{}, err
	}
	to, err := x.timeIn("to")
	if err != nil {
		return reply{}, err
	}
	environment, err := x.text("environment")
	if err != nil {
		return reply{}, err
	}
	if err := s.ownProject(x); err != nil {
		return reply{}, err
	}
	if utf8.RuneCountInString(environment) > environmentLimit {
		environment = "\x00" // no marker has it
	}
	all := slices.Clone(s.markers)
	slices.SortFunc(all, func(a, b *marker) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.wire.ID, a.wire.ID)) })
	if i := slices.IndexFunc(all, func(m *marker) bool { return m.cursor() == p.after }); i >= 0 {
		all = all[i+1:]
	}
	all = slices.DeleteFunc(all, func(m *marker) bool {
		return m.deleted || !within(m.at, from, to) || environment != "" && m.wire.Environment != environment
	})
	return listReply(p, all, func(m *marker) api.Marker { return m.wire }, (*marker).cursor)
}

// markerOfKey answers with the one marker of a key and what is known of it.
func (s *Server) markerOfKey(x *exchange, key string) (reply, error) {
	if err := s.ownProject(x); err != nil {
		return reply{}, err
	}
	record := s.keys[idempotency.Ref{Scope: s.ProjectID, Namespace: markerPolicy.Namespace, Key: key}]
	if record == nil {
		return reply{}, errNeverUsed
	}
	m, status := s.marker(record.Resource.ID), "created"
	if m.deleted {
		status = "deleted"
	}
	return jsonReply(http.StatusOK, api.MarkerOfKey{
		List: api.List[api.Marker]{Items: []api.Marker{m.wire}}, IdempotencyKey: known(record, status),
	})
}
