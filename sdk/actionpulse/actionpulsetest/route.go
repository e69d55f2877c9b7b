package actionpulsetest

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

// kind is a kind of credential.
type kind string

const (
	browser kind = "browser"
	server  kind = "server"
	legacy  kind = "legacy"
	project kind = "project"
	ci      kind = "ci"
	access  kind = "access"
)

// route is one method of one path.
type route struct {
	method, path string
	// kinds may call it; none: anybody.
	kinds []kind
	// limit is the most that a body may hold, 0 if none is read.
	limit int
	// intake routes take text/plain and a browser token as ?key=. Those that a
	// browser token may call may be called by pages of other origins.
	intake bool
	// key is how a keyed route treats its Idempotency-Key.
	key *idempotency.Policy
	// mutates says that a repeat may do the work a second time.
	mutates bool
	// invalid is the code of a body that is JSON and is refused.
	invalid api.Code
	handle  func(*Server, *exchange) (reply, error)
}

// name is how faults and requests name a route.
func (r *route) name() string { return r.method + " " + r.path }

// The most that bodies may hold.
const (
	trackLimit   = 1 << 20
	itemLimit    = 64 << 10
	creditLimit  = 64 << 10
	markerLimit  = 64 << 10
	authLimit    = 16 << 10
	flowLimit    = 256 << 10
	executeLimit = 1 << 20
)

// The policies of the keys.
var (
	markerPolicy  = idempotency.ReleaseMarker()
	executePolicy = idempotency.Execution()
	creditPolicy  = idempotency.CreditMovement(0)
)

// routes are all there are.
func routes() []route {
	return slices.Concat(intakeRoutes(), accountRoutes(), creditRoutes(), flowRoutes())
}

func intakeRoutes() []route {
	all, own := []kind{browser, server, legacy}, []kind{server, legacy}
	return []route{
		{method: "POST", path: "/v1/track", kinds: all, limit: trackLimit, intake: true, handle: (*Server).track},
		{method: "POST", path: "/v1/identify", kinds: all, limit: itemLimit, intake: true, handle: (*Server).identify},
		{method: "POST", path: "/v1/alias", kinds: own, limit: itemLimit, intake: true, handle: (*Server).alias},
		{method: "POST", path: "/v1/replay", kinds: all, limit: replayLimit, intake: true, handle: (*Server).replay},
	}
}

func accountRoutes() []route {
	const markers = "/api/v1/projects/{id}/release-markers"
	user := []kind{access}
	return []route{
		{method: "POST", path: "/api/v1/auth/login", limit: authLimit, mutates: true, handle: (*Server).login},
		{method: "POST", path: "/api/v1/auth/refresh", limit: authLimit, mutates: true, handle: (*Server).refresh},
		{method: "POST", path: "/api/v1/auth/logout", kinds: user, mutates: true, handle: (*Server).logout},
		{method: "POST", path: markers + "/deploy", kinds: []kind{ci}, limit: markerLimit, key: &markerPolicy, handle: (*Server).deployMarker},
		{method: "POST", path: markers, kinds: user, limit: markerLimit, mutates: true, handle: (*Server).createMarker},
		{method: "GET", path: markers, kinds: user, handle: (*Server).listMarkers},
		{method: "GET", path: markers + "/{marker_id}", kinds: user, handle: (*Server).getMarker},
		{method: "DELETE", path: markers + "/{marker_id}", kinds: user, mutates: true, handle: (*Server).deleteMarker},
		{method: "GET", path: "/healthz", handle: (*Server).healthy},
		{method: "GET", path: "/readyz", handle: (*Server).healthy},
	}
}

func creditRoutes() []route {
	const (
		one       = "/v1/customers/{external_user_id}"
		hold      = one + "/holds/{hold_id}"
		movements = "/v1/movements"
	)
	read := func(path string, handle func(*Server, *exchange) (reply, error)) route {
		return route{method: "GET", path: path, kinds: []kind{project}, handle: handle}
	}
	change := func(method, path string, handle func(*Server, *exchange) (reply, error)) route {
		return route{method: method, path: path, kinds: []kind{project}, limit: creditLimit, mutates: true, invalid: api.CodeInvalidRequest, handle: handle}
	}
	move := func(name string, handle func(*Server, *exchange) (reply, error)) route {
		r := change("POST", one+"/"+name, handle)
		r.key, r.mutates = &creditPolicy, false
		return r
	}
	release := change("POST", hold+"/release", (*Server).releaseHold)
	release.limit = 0
	return []route{
		read("/v1/customers", (*Server).listCustomers), read(one, (*Server).getCustomer),
		change("PUT", one, (*Server).ensureCustomer), change("PATCH", one, (*Server).changeCustomer),
		move("topup", (*Server).topup), move("charge", (*Server).charge), move("adjust", (*Server).adjust),
		read(one+"/balance", (*Server).getBalances), read(one+"/grants", (*Server).listGrants), read(one+"/holds", (*Server).listHolds), read(hold, (*Server).getHold),
		change("PUT", hold, (*Server).placeHold), change("POST", hold+"/capture", (*Server).captureHold), release,
		read(movements, (*Server).listMovements), read(movements+"/{movement_id}", (*Server).getMovement),
		change("POST", movements+"/{movement_id}/reversal", (*Server).reverseMovement),
		read("/v1/credit-types", (*Server).listCreditTypes), change("PUT", "/v1/credit-types/{name}", (*Server).declareCreditType),
		read("/v1/idempotency-keys", (*Server).findKey),
	}
}

func flowRoutes() []route {
	p := []kind{project}
	const one = "/v1/executions/{execution_id}"
	return []route{
		{method: "GET", path: "/v1/flows", kinds: p, handle: (*Server).listFlows},
		{method: "GET", path: "/v1/flows/{slug}", kinds: p, handle: (*Server).getFlow},
		{method: "PUT", path: "/v1/flows/{slug}", kinds: p, limit: flowLimit, mutates: true, invalid: api.CodeInvalidRequest, handle: (*Server).publishFlow},
		{
			method: "POST", path: "/v1/operations/execute", kinds: p, limit: executeLimit, key: &executePolicy,
			invalid: api.CodeInvalidRequest, handle: (*Server).execute,
		},
		{method: "GET", path: "/v1/operations", kinds: p, handle: (*Server).listOperations},
		{method: "GET", path: "/v1/executions", kinds: p, handle: (*Server).listExecutions},
		{method: "GET", path: one, kinds: p, handle: (*Server).getExecution},
		{method: "POST", path: one + "/cancel", kinds: p, mutates: true, handle: (*Server).cancelExecution},
	}
}

func (s *Server) healthy(*exchange) (reply, error) {
	return jsonReply(http.StatusOK, api.Status{Status: "ok"})
}

// resource is a path with its methods. One without methods does not exist.
type resource struct {
	methods map[string]*route
	allow   string
	cors    bool
}

// paths are those of every server: to group the routes takes longer than all else
// that a new server does.
var paths = sync.OnceValue(newPaths)

// newPaths groups the routes by path.
func newPaths() *http.ServeMux {
	all, mux := map[string]*resource{}, http.NewServeMux()
	for _, one := range routes() {
		r := all[one.path]
		if r == nil {
			r = &resource{methods: map[string]*route{}}
			all[one.path] = r
			mux.Handle(one.path, r)
		}
		r.methods[one.method] = &one
		if one.method == http.MethodGet {
			r.methods[http.MethodHead] = &one
		}
		r.cors = r.cors || slices.Contains(one.kinds, browser)
	}
	for _, r := range all {
		names := slices.Collect(maps.Keys(r.methods))
		if r.cors {
			names = append(names, http.MethodOptions)
		}
		slices.Sort(names)
		r.allow = strings.Join(names, ", ")
	}
	mux.Handle("/", nothing)
	return mux
}

// nothing is what is at every path that does not exist.
var nothing = &resource{}

// isClean says whether a path is written without empty, "." and ".." segments.
func isClean(p string) bool {
	return p != "" && p[0] == '/' && (path.Clean(p) == p || path.Clean(p)+"/" == p && p != "//")
}
