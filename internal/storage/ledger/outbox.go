package ledger

import (
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// Webhooks of what a group does are written with it: a message is there if and
// only if the movement is. Who wants to be told is read in the transaction,
// after the balances are locked, so that an endpoint gets every movement that
// is asked for after the endpoint's creation was answered.
const (
	findSubscribersText = `SELECT id, event_types, low_balance FROM webhook_endpoints WHERE project_id = $1 AND state = 'enabled'`

	createMessageText = `INSERT INTO webhook_messages (id, project_id, type, body, created_at) VALUES ($1, $2, $3, $4, $5)`

	createDeliveryText = `INSERT INTO webhook_deliveries (id, endpoint_id, message_id, state, attempts, next_attempt_at, epoch, created_at)
VALUES ($1, $2, $3, 'pending', 0, $4, 0, $4)`
)

// news is what others may want to hear of an account.
type news struct {
	// told is the balance after the latest of changes.
	told    credit.Balance
	changes []webhook.Change
}

// tell notes what a request, or time, has done to the account.
func (a *account) tell(movements []credit.Movement, at time.Time) {
	after := a.Balance()
	if len(movements) > 0 || after != a.told {
		a.changes = append(a.changes, webhook.Change{
			ProjectID: a.projectID, Customer: a.customer, CreditType: a.typeName,
			Movements: movements, Before: a.told, After: after, At: at,
		})
	}
	a.told = after
}

// findSubscribers are the statements that read who wants to be told, once for
// each project.
func (w *work) findSubscribers() []sqldb.Statement {
	w.subscribers = map[string][]webhook.Subscriber{}
	var statements []sqldb.Statement
	for _, a := range w.sorted() {
		project := a.projectID
		if _, ok := w.subscribers[project]; ok {
			continue
		}
		w.subscribers[project] = nil
		statements = append(statements, sqldb.Statement{
			Text: findSubscribersText, Args: []any{project}, Row: func(scan func(...any) error) error {
				var s webhook.Subscriber
				var types, thresholds string
				if err := scan(&s.EndpointID, &types, &thresholds); err != nil {
					return err
				}
				var err error
				s.Wishes, err = webhook.ParseWishes(types, thresholds)
				w.subscribers[project] = append(w.subscribers[project], s)
				return err
			},
		})
	}
	return statements
}

// writeMessages writes the messages about what has been done to an account,
// with a delivery for each endpoint that wants one.
func (w *work) writeMessages(a *account) error {
	subscribers := w.subscribers[a.projectID]
	if len(subscribers) == 0 {
		return nil
	}
	for i := range a.changes {
		notices, err := webhook.Notices(&a.changes[i], subscribers, w.newID)
		if err != nil {
			return fmt.Errorf("make messages of a movement: %w", err)
		}
		for j := range notices {
			if err := w.writeNotice(&notices[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) writeNotice(n *webhook.Notice) error {
	at := n.At.UnixMicro()
	w.add(createMessageText, n.ID, n.ProjectID, string(n.Type), n.Body, at)
	for _, endpoint := range n.Endpoints {
		id, err := w.newID()
		if err != nil {
			return err
		}
		w.add(createDeliveryText, id, endpoint, n.ID, at)
	}
	w.noticed = true
	return nil
}
