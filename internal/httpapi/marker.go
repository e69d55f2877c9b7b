package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/release"
)

// markerLimit is the most that the body of a release marker may hold.
const markerLimit = 64 << 10

var deployMarkerOperation = operation{
	id: "createDeployMarker", tag: tagAlerts, summary: "Mark a deploy, once for each Idempotency-Key",
	description: "For CI/CD pipelines, whose steps are run again as a matter of course. A repeat gets the marker that its " +
		"key has made, as it is now. Bodies are compared by value: member order, white space, the spelling of numbers and " +
		"strings, null for an absent member, the default environment and the offset of ts do not matter. Keys do not expire.",
	params:  []param{idParam("id", "The project of the CI/CD token.")},
	request: api.MarkerContent{},
	replies: []reply{
		{status: http.StatusCreated, doc: "The marker was made.", body: api.Marker{}},
		{status: http.StatusOK, doc: "The key has made this marker before.", body: api.Marker{}, replayed: true},
	},
	errors: append(codes(api.CodeNotFound, api.CodeValidationFailed, api.CodeInvalidJSON),
		api.LookupStatus(api.CodeValidationFailed, http.StatusConflict)),
}

// deployMarker makes a marker, or answers with the one that the key names.
func (s *service) deployMarker(x *exchange) (answer, error) {
	if x.r.PathValue("id") != x.caller.ProjectID {
		return answer{}, fault.New(api.CodeNotFound, "there is no such project")
	}
	m, replayed, err := s.Markers.Deploy(x.r.Context(), release.DeployParams{
		ProjectID: x.caller.ProjectID, Key: x.key, Body: x.body.data,
		Decode: func() (release.Content, error) {
			x.free()
			return markerContent(x)
		},
	})
	if err != nil {
		return answer{}, x.settle(err)
	}
	if !replayed {
		return jsonAnswer(http.StatusCreated, markerOf(&m))
	}
	x.w.Header()[idempotency.Replayed] = []string{"true"}
	return jsonAnswer(http.StatusOK, markerOf(&m))
}

var createMarkerOperation = operation{
	id: "createMarker", tag: tagAlerts, summary: "Mark a release by hand",
	description: "A repeat makes a second marker: an Idempotency-Key is not read here.",
	params:      []param{idParam("id", "The project.")},
	request:     api.MarkerContent{},
	replies:     replyCreated("The marker.", api.Marker{}),
	errors:      codes(api.CodeNotFound, api.CodeValidationFailed, api.CodeInvalidJSON),
}

func (s *service) createMarker(x *exchange) (answer, error) {
	content, err := markerContent(x)
	if err != nil {
		return answer{}, err
	}
	project, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	m, err := s.Markers.Create(x.r.Context(), project.ID, content)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, markerOf(&m))
}

var listMarkersOperation = operation{
	id: "listMarkers", tag: tagAlerts, summary: "List release markers, latest first",
	description: "With idempotency_key, the marker that this key has made, deleted or not, and what is known of the key.",
	params: pageParams(
		idParam("id", "The project."),
		textParam("from", "Markers from this time on, as in RFC 3339."),
		textParam("to", "Markers before this time, as in RFC 3339."),
		textParam("environment", "Markers of this environment."),
		textParam("idempotency_key", "The marker of this Idempotency-Key; other parameters are ignored."),
	),
	replies: replyOK("A page of markers; with idempotency_key, one marker and what is known of the key.",
		alternatives{api.List[api.Marker]{}, api.MarkerOfKey{}}),
	errors: codes(api.CodeNotFound, api.CodeValidationFailed),
}

func (s *service) listMarkers(x *exchange) (answer, error) {
	key, err := x.text("idempotency_key")
	if err != nil {
		return answer{}, err
	}
	if key != "" {
		return s.markerOfKey(x, key)
	}
	p, cursor, err := markerRange(x)
	if err != nil {
		return answer{}, err
	}
	project, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	p.ProjectID = project.ID
	markers, next, err := s.Markers.List(x.r.Context(), p, cursor)
	if err != nil {
		return answer{}, err
	}
	items := make([]api.Marker, len(markers))
	for i := range markers {
		items[i] = markerOf(&markers[i])
	}
	return listAnswer(items, next)
}

// markerRange reads the parameters of the list.
func markerRange(x *exchange) (p release.ListParams, cursor string, err error) {
	part, err := x.page()
	if err != nil {
		return p, "", err
	}
	if p.From, err = x.time("from"); err != nil {
		return p, "", err
	}
	if p.To, err = x.time("to"); err != nil {
		return p, "", err
	}
	if p.Environment, err = x.text("environment"); err != nil {
		return p, "", err
	}
	p.Limit = part.limit
	return p, part.after, nil
}

// markerOfKey answers with the one marker of a key and what is known of it.
func (s *service) markerOfKey(x *exchange, key string) (answer, error) {
	project, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	known, err := s.Markers.FindKey(x.r.Context(), project.ID, key)
	if err != nil {
		return answer{}, err
	}
	status := "created"
	if !known.Marker.DeletedAt.IsZero() {
		status = "deleted"
	}
	return jsonAnswer(http.StatusOK, api.MarkerOfKey{
		List:           api.List[api.Marker]{Items: []api.Marker{markerOf(&known.Marker)}},
		IdempotencyKey: *keyOf(&known.Record, status),
	})
}

var getMarkerOperation = operation{
	id: "getMarker", tag: tagAlerts, summary: "Get a release marker",
	params:  []param{idParam("id", "The project."), idParam("marker_id", "The marker.")},
	replies: replyOK("The marker.", api.Marker{}),
	errors:  codes(api.CodeNotFound),
}

func (s *service) getMarker(x *exchange) (answer, error) {
	project, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	m, err := s.Markers.Get(x.r.Context(), project.ID, x.r.PathValue("marker_id"))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, markerOf(&m))
}

var deleteMarkerOperation = operation{
	id: "deleteMarker", tag: tagAlerts, summary: "Delete a release marker",
	description: "Its Idempotency-Key stays taken: a repeat of the deploy gets the deleted marker, and makes none.",
	params:      []param{idParam("id", "The project."), idParam("marker_id", "The marker.")},
	replies:     replyNothing("It is deleted."),
	errors:      codes(api.CodeNotFound),
}

func (s *service) deleteMarker(x *exchange) (answer, error) {
	project, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	if err := s.Markers.Delete(x.r.Context(), project.ID, x.r.PathValue("marker_id")); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

// markerContent reads the body of a marker.
func markerContent(x *exchange) (release.Content, error) {
	in, err := decode[api.MarkerContent](x)
	if err != nil {
		return release.Content{}, err
	}
	c := release.Content{
		Version: in.Version, Environment: textOf(in.Environment), Commit: textOf(in.Commit),
		URL: textOf(in.URL), Title: textOf(in.Title), Metadata: in.Metadata,
	}
	if in.TS != nil {
		// The library takes a comma for a point; and its zero time is "none".
		c.TS, err = time.Parse(time.RFC3339Nano, *in.TS)
		if err != nil || c.TS.IsZero() || strings.Contains(*in.TS, ",") {
			return c, fault.Field("ts", "ts must be a time as in RFC 3339, like 2024-01-01T00:00:00Z")
		}
	}
	return c, nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// markerOf is a marker as it is sent.
func markerOf(m *release.Marker) api.Marker {
	return api.Marker{
		ID: m.ID, ProjectID: m.ProjectID, Version: m.Version, Environment: m.Environment, TS: api.TimeText(m.TS),
		Commit: api.OptionalText(m.Commit), URL: api.OptionalText(m.URL), Title: api.OptionalText(m.Title), Metadata: m.Metadata,
		Source: string(m.Source), CreatedAt: api.TimeText(m.CreatedAt), DeletedAt: api.OptionalTime(m.DeletedAt),
	}
}
