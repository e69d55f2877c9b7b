package sqlstore_test

import (
	"crypto/rand"
	"testing"

	"github.com/actionpulse/actionpulse/internal/alert"
	"github.com/actionpulse/actionpulse/internal/query"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// alertTests are run one after the other on one database for each engine: what
// evaluators and sweeps see is all of its alerts. Where an engine is named, the
// test is of what depends on no other.
var alertTests = []struct {
	name, engine string
	run          func(t *testing.T, w *watch)
}{
	{"EvaluatorsShareTheWork", "", testEvaluatorsShareTheWork},
	{"EvaluatorIsKilled", "PostgreSQL", testEvaluatorIsKilled},
	{"AlertChangesWhileItIsJudged", "", testAlertChangesWhileItIsJudged},
	{"ReleasesBesideAnAlert", "", testReleasesBesideAnAlert},
	{"MuteAndResolve", "", testMuteAndResolve},
	{"IngestHealth", "", testIngestHealth},
	{"ProjectsAreServedInTurn", "", testProjectsAreServedInTurn},
	{"AlertsOfAProjectAreLimited", "", testAlertsOfAProjectAreLimited},
	{"AlertSweep", "", testAlertSweep},
	{"AlertConstraints", "", testAlertConstraints},
	{"AlertsAreAudited", "SQLite", testAlertsAreAudited},
	{"NoPeriodIsJudgedEarly", "", testNoPeriodIsJudgedEarly},
	{"TheAnswerSaysHowFarEventsAreStored", "SQLite", testTheAnswerSaysHowFarEventsAreStored},
	{"LateEvents", "SQLite", testLateEvents},
	{"CatchUp", "SQLite", testCatchUp},
	{"QueriesFail", "SQLite", testQueriesFail},
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	for engine, open := range map[string]storagetest.OpenFunc{"SQLite": storagetest.SQLite, "PostgreSQL": storagetest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, open)
			for _, test := range alertTests {
				if test.engine == "" || test.engine == engine {
					t.Run(test.name, func(t *testing.T) { test.run(t, p.newWatch(t)) }) //nolint:paralleltest // see alertTests
				}
			}
		})
	}
}

// post is a database that tests of alerts share.
type post struct {
	options sqldb.Options
	db      *sqldb.DB
	// projects is how many there are.
	projects uint32
}

func newPost(t *testing.T, open storagetest.OpenFunc) *post {
	t.Helper()
	o := open(t, storagetest.Tables)
	return &post{options: o, db: storagetest.Open(t, o)}
}

// newWatch makes a watch in an organization of its own, without the alerts of
// the tests before.
func (p *post) newWatch(t *testing.T) *watch {
	t.Helper()
	w := &watch{post: p, now: began, health: alert.NewHealth(), metric: func(query.Window) int64 { return 0 }}
	for _, table := range []string{"alert_history", "alert_evaluations", "alerts"} {
		if err := statement(t, w, "DELETE FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
	store := sqlstore.New(w.db)
	w.place = alert.Place{OrganizationID: newName(), ProjectID: newName()}
	w.place.Actor.UserID = newName()
	for text, args := range map[string][]any{
		`INSERT INTO organizations (id, name, created_at) VALUES ($1, 'o', 0)`:                       {w.place.OrganizationID},
		`INSERT INTO users (id, email, password_hash, created_at) VALUES ($1, $2, '$argon2id$x', 0)`: {w.place.Actor.UserID, newName() + "@b"},
	} {
		if err := statement(t, w, text, args...); err != nil {
			t.Fatal(err)
		}
	}
	w.project(t, w.place.ProjectID)
	w.number = p.projects
	w.service = alert.NewService(alert.Params{
		Store: sqlstore.NewAlerts(w.db), Reader: &alert.Reader{Querier: w, Health: w.health}, Clock: w.clock, Random: rand.Reader,
		Wake: func() {}, Told: func() {},
	})
	w.hooks = webhook.NewService(webhook.Params{Store: store, AllowPrivate: true, Clock: w.clock, Random: rand.Reader, Wake: func() {}})
	w.hook = webhook.Place{OrganizationID: w.place.OrganizationID, ProjectID: w.place.ProjectID}
	e, _, err := w.hooks.Create(t.Context(), w.hook, webhook.Content{
		URL: "http://127.0.0.1/hook", Wishes: webhook.Wishes{Types: []webhook.Type{webhook.AlertFired, webhook.AlertResolved}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.hook.EndpointID = e.ID
	return w
}

// project makes a project of the organization.
func (w *watch) project(t *testing.T, id string) {
	t.Helper()
	w.projects++
	err := statement(t, w, `INSERT INTO projects (id, number, organization_id, name, created_at) VALUES ($1, $2, $3, 'p', 0)`,
		id, w.projects, w.place.OrganizationID)
	if err != nil {
		t.Fatal(err)
	}
}
