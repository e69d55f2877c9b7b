package privacy_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/id"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// post is the webhooks of a bench: endpoints, and messages to them.
type post struct {
	*bench

	endpoints []string
	at        time.Time
}

func newPost(t *testing.T, b *bench, endpoints int) *post {
	t.Helper()
	p := &post{bench: b, at: b.now().Truncate(time.Microsecond)}
	for range endpoints {
		p.endpoints = append(p.endpoints, newID(t))
		must(t, b.db.Write(t.Context(), func(q *sqldb.Queries) error {
			return q.CreateWebhookEndpoint(t.Context(), sqldb.CreateWebhookEndpointParams{
				ID: p.endpoints[len(p.endpoints)-1], ProjectID: b.at.ProjectID, Url: "https://example.com", EventTypes: "[]", LowBalance: "[]",
				Secret: "whsec_x", CreatedAt: p.at.UnixMicro(),
			})
		}))
	}
	return p
}

func newID(t *testing.T) string {
	t.Helper()
	text, err := id.New(time.Now(), rand.Reader)
	must(t, err)
	return text
}

// send makes a message with a delivery to each endpoint, in the states given.
func (p *post) send(t *testing.T, at time.Time, data string, states ...string) (messageID string) {
	t.Helper()
	messageID = webhook.MessageID(newID(t))
	must(t, p.db.Write(t.Context(), func(q *sqldb.Queries) error {
		return q.CreateWebhookMessage(t.Context(), sqldb.CreateWebhookMessageParams{
			ID: messageID, ProjectID: p.bench.at.ProjectID, Type: "movement.created", CreatedAt: at.UnixMicro(),
			Body: fmt.Appendf(nil, `{"type":"movement.created","timestamp":"2026-01-01T00:00:00.000Z","data":%s}`, data),
		})
	}))
	for i, state := range states {
		p.deliver(t, messageID, p.endpoints[i], state)
	}
	return messageID
}

func (p *post) deliver(t *testing.T, messageID, endpoint, state string) {
	t.Helper()
	var due, finished any = p.at.UnixMicro(), nil
	if state != "pending" {
		due, finished = nil, due
	}
	must(t, p.db.WriteTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `
			INSERT INTO webhook_deliveries (id, endpoint_id, message_id, state, attempts, next_attempt_at, epoch, created_at, finished_at)
			VALUES ($1, $2, $3, $4, 1, $5, 0, $6, $7)`, newID(t), endpoint, messageID, state, due, p.at.UnixMicro(), finished)
		return err
	}))
}

func (p *post) body(t *testing.T, messageID string) (body string) {
	t.Helper()
	must(t, p.db.Reader().QueryRowContext(t.Context(), `SELECT body FROM webhook_messages WHERE id = $1`, messageID).Scan(&body))
	return body
}

// run writes statements about a customer that no service would write with such
// times.
func (p *post) run(t *testing.T, text string, args ...any) {
	t.Helper()
	must(t, p.db.WriteTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), text, args...)
		return err
	}))
}

// TestTheNewestOfACustomer: the latest time of what is redacted by its time.
func TestTheNewestOfACustomer(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		p := newPost(t, b, 1)
		want := func(what, customer string, at time.Time) {
			t.Helper()
			got, err := b.store.Newest(t.Context(), b.at.ProjectID, customer)
			if err != nil || !got.Equal(at) {
				t.Errorf("%s: %s, want %s, %v", what, got, at, err)
			}
		}
		later := func(hours int) int64 { return p.at.Add(time.Duration(hours) * time.Hour).UnixMicro() }
		want("nothing", "ada", time.Time{})
		p.send(t, p.at, `{}`, "pending")
		p.send(t, p.at.Add(-time.Hour), `{}`)
		want("a message", "ada", p.at)
		want("no id of a customer", "..", p.at)
		p.run(t, `INSERT INTO customers (project_id, external_id, created_at) VALUES ($1, 'ada', $2), ($1, 'bob', $2)`, b.at.ProjectID, later(9))
		want("a customer", "ada", p.at)
		p.run(t, `INSERT INTO credit_types (project_id, name, allow_negative, created_at) VALUES ($1, 'main', 0, $2)`, b.at.ProjectID, later(9))
		p.run(t, `INSERT INTO balances (customer_id, credit_type_id, allow_negative, posted, held, has_grants, updated_at)
			SELECT c.id, y.id, 0, 9, 9, 0, $1 FROM customers c, credit_types y`, later(9))
		hold := func(customer string, at int64) {
			p.run(t, `INSERT INTO holds (customer_id, credit_type_id, hold_id, amount, captured, state, created_at, print)
				SELECT c.id, y.id, $1, 1, 0, 'open', $2, '' FROM customers c, credit_types y WHERE c.external_id = $3`, newID(t), at, customer)
		}
		hold("ada", later(2))
		hold("ada", later(1))
		hold("bob", later(8))
		want("a hold", "ada", p.at.Add(2*time.Hour))
		p.run(t, `INSERT INTO flows (project_id, slug, latest_version, created_at) VALUES ($1, 'f', 1, $2)`, b.at.ProjectID, later(9))
		p.run(t, `INSERT INTO flow_versions (flow_id, version, definition, created_at) SELECT id, 1, '{}', $1 FROM flows`, later(9))
		execute := func(customer string, at int64) {
			p.run(t, `INSERT INTO executions (id, project_id, flow_id, version, customer_id, work_key, mode, status, input, charged, unbilled,
					input_tokens, output_tokens, cached_tokens, reasoning_tokens, epoch, created_at)
				SELECT $1, $2, f.id, 1, c.id, $3, 'sync', 'queued', '{}', 0, 0, 0, 0, 0, 0, 0, $4
				FROM flows f, customers c WHERE c.external_id = $5`, newID(t), b.at.ProjectID, newID(t), at, customer)
		}
		execute("ada", later(3))
		execute("bob", later(8))
		want("an execution", "ada", p.at.Add(3*time.Hour))
		want("another customer's", "bob", p.at.Add(8*time.Hour))
		want("nobody's", "eve", p.at)
		if at, err := b.store.Newest(t.Context(), newID(t), "ada"); !at.IsZero() || err != nil {
			t.Errorf("of another project: %s, %v", at, err)
		}
	})
}

// TestMessagesAreRedacted: those about the customer that nobody waits for,
// however many there are; what is still to be sent, what came later, and what is
// about others stays as it was signed.
func TestMessagesAreRedacted(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, b *bench) {
		p := newPost(t, b, 2)
		const secret = `"reason":"ada's secret"`
		movement := func(customer string) string {
			return `{"movement":{"customer":"` + customer + `",` + secret + `},"balance":{}}`
		}
		gone := []string{
			p.send(t, p.at, movement("ada"), "delivered", "dead"),
			p.send(t, p.at, movement("ada"), "dead"),
			p.send(t, p.at, movement("ada")),
			p.send(t, p.at, `{"customer":"ada",`+secret+`}`, "delivered"),
			p.send(t, p.at, movement(`\u0061da`), "delivered"),
		}
		kept := []string{
			p.send(t, p.at, movement("ada"), "delivered", "pending"),
			p.send(t, p.at.Add(time.Microsecond), movement("ada"), "delivered"),
			p.send(t, p.at, movement("ada2"), "delivered"),
			p.send(t, p.at, `{"customer":"bob","note":"ada",`+secret+`}`, "delivered"),
		}
		params := privacy.RedactParams{ProjectID: b.at.ProjectID, Customer: "ada", Before: p.at, Limit: 2}
		other := params
		other.ProjectID = newID(t)
		must(t, b.store.RedactMessages(t.Context(), other))
		if body := p.body(t, gone[0]); !strings.Contains(body, secret) {
			t.Errorf("another project's message was redacted: %s", body)
		}
		for range 2 { // a repeat changes nothing
			must(t, b.store.RedactMessages(t.Context(), params))
			for i, messageID := range gone {
				want := `{"data":{"erased":true},"timestamp":"2026-01-01T00:00:00.000Z","type":"movement.created"}`
				if body := p.body(t, messageID); body != want {
					t.Errorf("message %d: %s", i, body)
				}
			}
			for i, messageID := range kept {
				if body := p.body(t, messageID); !strings.Contains(body, secret) {
					t.Errorf("message %d that stays: %s", i, body)
				}
			}
		}
	})
}
