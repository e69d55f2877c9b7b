package lint

import (
	"slices"
	"strings"
	"testing"
)

// rule says what the packages of one kind may import of this module. A folder
// stands for the packages below it too.
type rule struct {
	kind       string
	packages   []string
	mayImport  []string
	exceptions map[string][]string
}

// public packages can be imported by anyone outside and drag nothing along.
var public = []string{"api", "idempotency", "retry"}

// clients are what users build into their programs: the same words and the same
// retry table as the server, and nothing of its inside.
var clients = []string{"sdk"}

// base packages know nothing of the product but its words.
var base = []string{
	"internal/atomicfile", "internal/backup", "internal/cienv", "internal/config", "internal/crash", "internal/fault", "internal/id", "internal/jsonsyntax",
	"internal/publicnet", "internal/recent", "internal/record", "internal/telemetry",
}

// domain packages hold the rules. They declare the small interfaces of what
// they need and do not know who fulfils them.
var domain = []string{
	"internal/account", "internal/alert", "internal/audit", "internal/auditlog", "internal/credential", "internal/credit", "internal/dedup", "internal/identity",
	"internal/execution", "internal/flow", "internal/intake", "internal/materializer", "internal/model", "internal/privacy", "internal/query", "internal/quota",
	"internal/release", "internal/replay", "internal/retention", "internal/webhook", "internal/work",
}

// stores each own one engine.
var stores = []string{"internal/blobstore", "internal/eventstore", "internal/intakestore", "internal/storage"}

// edges face the network.
var edges = []string{"internal/callhttp", "internal/httpapi", "internal/lab", "internal/openai", "internal/otlp", "internal/sendfile", "internal/sendhook"}

// testTools help tests and are in no program.
var testTools = []string{"internal/apptest", "internal/proptest", "test"}

// rules are the layers, from the bottom to the top:
// cmd → app → edges and stores → domain → base → public, and clients → public.
var rules = []rule{
	{
		kind: "public", packages: public,
		exceptions: map[string][]string{"idempotency/sqlstore": {"idempotency"}},
	},
	{kind: "client", packages: clients, mayImport: slices.Concat(public, clients)},
	{kind: "base", packages: base, mayImport: slices.Concat(public, base)},
	{
		kind: "domain", packages: domain, mayImport: slices.Concat(public, base, domain),
		// These three are the path of an event between the two stores, where
		// an interface would hide the promise that the code depends on.
		exceptions: map[string][]string{
			"internal/intake":       {"internal/intakestore"},
			"internal/materializer": {"internal/intakestore", "internal/eventstore"},
			"internal/audit":        {"internal/intakestore", "internal/eventstore"},
		},
	},
	{
		kind: "store", packages: stores, mayImport: slices.Concat(public, base, domain),
		exceptions: map[string][]string{
			"internal/eventstore": {"internal/eventstore"},
			"internal/storage":    {"internal/storage"},
		},
	},
	{
		kind: "edge", packages: edges, mayImport: slices.Concat(public, base, domain),
		// A model is called as an HTTP step calls: by one client, so that the same
		// is known of both when a call fails.
		exceptions: map[string][]string{
			"internal/openai": {"internal/callhttp", "internal/openai"},
			"internal/lab":    {"internal/lab", "sdk"},
		},
	},
	{kind: "composition", packages: []string{"internal/app"}, mayImport: slices.Concat(public, base, domain, stores, edges)},
	{kind: "command", packages: []string{"cmd"}, mayImport: slices.Concat(public, clients, base, domain, edges, []string{"internal/app"})},
	{kind: "test tool", packages: testTools, mayImport: []string{"api", "idempotency", "retry", "sdk", "internal", "test"}},
	{kind: "source test", packages: []string{"internal/lint"}},
}

// owned are the libraries that only some packages may know, so that another
// one can be taken without touching the rest.
var owned = map[string][]string{
	"github.com/duckdb":                {"internal/eventstore"},
	"github.com/cockroachdb/pebble/v2": {"internal/intakestore"},
	"github.com/danielgtaylor/huma/v2": {"internal/httpapi"},
	"database/sql":                     {"idempotency/sqlstore", "internal/storage"},
	"github.com/jackc/pgx/v5":          {"internal/storage"},
	"modernc.org":                      {"internal/storage"},
	"github.com/minio":                 {"internal/blobstore"},
	"github.com/prometheus":            {"internal/telemetry", "internal/httpapi"},
	"github.com/alecthomas/kong":       {"internal/config", "cmd"},
	"github.com/expr-lang/expr":        {"internal/flow/template"},
	"github.com/santhosh-tekuri":       {"internal/flow"},
	"go.opentelemetry.io":              {"internal/otlp"},
	"net/http": {
		"api", "idempotency", "retry", "internal/callhttp", "internal/httpapi", "internal/lab", "internal/openai", "internal/otlp", "internal/sendfile", "internal/sendhook",
		"internal/app", "cmd", "sdk",
	},
}

func TestImportsFollowTheLayers(t *testing.T) {
	t.Parallel()
	for _, f := range all(t) {
		if f.isTest() {
			continue
		}
		r, ok := ruleOf(f.pkg())
		if !ok {
			t.Errorf("%s: its package is in no layer; add it to the lists above", f.path)
			continue
		}
		for _, imported := range f.imports {
			inside, ok := strings.CutPrefix(imported, module+"/")
			if ok && !r.allows(f.pkg(), inside) {
				t.Errorf("%s: a %s package must not import %s", f.path, r.kind, inside)
			}
		}
	}
}

func TestLibrariesStayWithTheirOwners(t *testing.T) {
	t.Parallel()
	for _, f := range all(t) {
		if f.isTest() || anyWithin(f.pkg(), testTools) {
			continue
		}
		for _, imported := range f.imports {
			for library, owners := range owned {
				if within(imported, library) && !anyWithin(f.pkg(), owners) {
					t.Errorf("%s: only %s may import %s", f.path, strings.Join(owners, ", "), library)
				}
			}
		}
	}
}

// TestOnlyTheEventStoreLinksDuckDB keeps test binaries small, too: a package
// that links DuckDB takes seconds and 70 MB to link.
func TestOnlyTheEventStoreLinksDuckDB(t *testing.T) {
	t.Parallel()
	for _, f := range all(t) {
		for _, imported := range f.imports {
			if within(imported, "github.com/duckdb") && !within(f.pkg(), "internal/eventstore") {
				t.Errorf("%s: only internal/eventstore may import DuckDB", f.path)
			}
		}
	}
}

func ruleOf(pkg string) (rule, bool) {
	for _, r := range rules {
		if anyWithin(pkg, r.packages) {
			return r, true
		}
	}
	return rule{}, false
}

func (r rule) allows(pkg, imported string) bool {
	for from, to := range r.exceptions {
		if within(pkg, from) && anyWithin(imported, to) {
			return true
		}
	}
	return anyWithin(imported, r.mayImport)
}

// within says whether path is folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func anyWithin(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return within(path, folder) })
}
