package httpapi

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/release"
	"github.com/actionpulse/actionpulse/internal/telemetry"
)

// The most a body may hold, inflated.
const (
	trackLimit = 1 << 20
	// One identify or alias is one item.
	itemLimit  = 64 << 10
	queryLimit = 256 << 10
)

// route is one method of one path.
type route struct {
	method string
	path   string
	// access says who may call it.
	access access
	// body says what it reads.
	body body
	// effect says what a repeat of a request could do.
	effect effect
	// doc is what the API document says of it.
	doc    operation
	handle func(s *service, x *exchange) (answer, error)
}

// markersPath is where release markers are.
const markersPath = "/api/v1/projects/{id}/release-markers"

// routes is every route there is.
func routes() []route {
	return slices.Concat(projectRoutes(), creditRoutes(), flowRoutes(), executionRoutes(), accountRoutes(), webhookRoutes(), alertRoutes(), modelRoutes(), replayRoutes(),
		privacyRoutes(), serverRoutes())
}

// projectRoutes are those of what is sent to a project and asked of it.
func projectRoutes() []route {
	ingest := access{kinds: []credential.Kind{credential.Browser, credential.Server, credential.Legacy}, keyInURL: true, cors: true}
	noBrowser := access{kinds: []credential.Kind{credential.Server, credential.Legacy}, keyInURL: true}
	member := access{kinds: []credential.Kind{credential.Access}, role: roleMember}
	viewer := access{kinds: []credential.Kind{credential.Access}, role: roleViewer}
	project := access{kinds: []credential.Kind{credential.Project}}
	ci := access{kinds: []credential.Kind{credential.CI}}
	return []route{
		{"POST", "/v1/track", ingest, beacon(trackLimit), takesIn, trackOperation, (*service).track},
		{"POST", "/v1/identify", ingest, beacon(itemLimit), takesIn, identifyOperation, (*service).identify},
		{"POST", "/v1/alias", noBrowser, beacon(itemLimit), takesIn, aliasOperation, (*service).alias},
		{"POST", "/api/v1/projects/{id}/query", member, jsonBody(queryLimit), reads, queryOperation, (*service).query},
		{"GET", "/api/v1/projects/{id}/ingest/debug", viewer, body{}, reads, ingestDebugOperation, (*service).ingestDebug},
		{"POST", markersPath + "/deploy", ci, jsonBody(markerLimit).under(release.KeyPolicy()), keyed, deployMarkerOperation, (*service).deployMarker},
		{"POST", markersPath, member, jsonBody(markerLimit), mutates, createMarkerOperation, (*service).createMarker},
		{"GET", markersPath, viewer, body{}, reads, listMarkersOperation, (*service).listMarkers},
		{"GET", markersPath + "/{marker_id}", viewer, body{}, reads, getMarkerOperation, (*service).getMarker},
		{"DELETE", markersPath + "/{marker_id}", member, body{}, mutates, deleteMarkerOperation, (*service).deleteMarker},
		{"GET", "/v1/idempotency-keys", project, body{}, reads, findKeyOperation, (*service).findKey},
	}
}

// serverRoutes are those of the server itself, which anybody may call.
func serverRoutes() []route {
	open := access{open: true}
	return []route{
		{"GET", "/healthz", open, body{}, reads, healthOperation, (*service).health},
		{"GET", "/readyz", open, body{}, reads, readyOperation, (*service).ready},
		{"GET", "/api/openapi.json", open, body{}, reads, openAPIOperation, (*service).openAPI},
		{"GET", "/api/docs", open, body{}, reads, docsOperation, (*service).docs},
		{"GET", "/metrics", open, body{}, reads, metricsOperation, (*service).metrics},
	}
}

// resource is one path with its methods.
type resource struct {
	service *service
	methods map[string]route
	// allow is the Allow header; empty for the resource that does not exist.
	allow []string
	// cors says that pages of other origins may call it.
	cors    bool
	metrics *telemetry.Route
}

func (s *service) newResource(name string) *resource {
	return &resource{
		service: s,
		methods: map[string]route{},
		metrics: s.Metrics.Route(name),
	}
}

// resources groups the routes by path.
func (s *service) resources(table []route) map[string]*resource {
	all := map[string]*resource{}
	for _, rt := range table {
		r := all[rt.path]
		if r == nil {
			r = s.newResource(rt.path)
			all[rt.path] = r
		}
		r.methods[rt.method] = rt
		if rt.method == http.MethodGet {
			r.methods[http.MethodHead] = rt
		}
		r.cors = r.cors || rt.access.cors
	}
	for _, r := range all {
		allowed := slices.Collect(maps.Keys(r.methods))
		if r.cors {
			allowed = append(allowed, http.MethodOptions)
		}
		slices.Sort(allowed)
		r.allow = []string{strings.Join(allowed, ", ")}
	}
	return all
}

// isClean reports whether an escaped path is written without empty, "." and
// ".." segments.
func isClean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	clean := path.Clean(p)
	return clean == p || (len(p) == len(clean)+1 && strings.HasPrefix(p, clean) && p != "//")
}
