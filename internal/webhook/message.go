package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
)

// Message is a fact that is told.
type Message struct {
	// ID is what receivers know it by, in the header webhook-id.
	ID        string
	ProjectID string
	Type      Type
	// Body is signed and sent as it is.
	Body []byte
	At   time.Time
}

// messagePrefix begins the id of a message; a UUID follows.
const messagePrefix = "msg_"

// Subscriber is what matters of an enabled endpoint to whom makes messages.
type Subscriber struct {
	EndpointID string
	Wishes
}

// Notice is a message with the endpoints that want it.
type Notice struct {
	Message

	Endpoints []string
}

// Change is what one request, or time, has done to a balance.
type Change struct {
	ProjectID, Customer, CreditType string
	// Movements are the entries that it has made; none when it has only held
	// or let go.
	Movements     []credit.Movement
	Before, After credit.Balance
	At            time.Time
}

// Notices are the messages about a change that some of the subscribers want,
// each with one id for all of them. A movement's message is named by the
// movement; others by newID.
func Notices(c *Change, subscribers []Subscriber, newID func() (string, error)) ([]Notice, error) {
	var notices []Notice
	if to := wanting(subscribers, MovementCreated); len(to) > 0 {
		for i := range c.Movements {
			m := &c.Movements[i]
			n, err := notice(m.ID, MovementCreated, c, api.MovementCreated{Movement: m.Wire(), Balance: balanceOf(c.After)})
			if err != nil {
				return nil, err
			}
			n.Endpoints = to
			notices = append(notices, n)
		}
	}
	low, err := lowNotices(c, subscribers, newID)
	return append(notices, low...), err
}

// Fact is something to be told that is no change of a balance.
type Fact struct {
	// Ref names the message: a UUID that no other fact has.
	Ref       string
	ProjectID string
	Type      Type
	At        time.Time
	// Data is what is told.
	Data any
}

// FactNotice is the message about a fact. It is for no endpoint if none of the
// subscribers wants it.
func FactNotice(f *Fact, subscribers []Subscriber) (Notice, error) {
	m, err := newMessage(f.Ref, f.Type, f.ProjectID, f.At, f.Data)
	return Notice{Message: m, Endpoints: wanting(subscribers, f.Type)}, err
}

// MessageID is the id of the message about the fact that ref names.
func MessageID(ref string) string { return messagePrefix + ref }

// wanting are the endpoints that want a type.
func wanting(subscribers []Subscriber, t Type) []string {
	var to []string
	for _, s := range subscribers {
		if slices.Contains(s.Types, t) {
			to = append(to, s.EndpointID)
		}
	}
	return to
}

// lowNotices tell of the thresholds that the change has crossed downwards, one
// message for each.
func lowNotices(c *Change, subscribers []Subscriber, newID func() (string, error)) ([]Notice, error) {
	var crossed []Threshold
	to := map[Threshold][]string{}
	for _, s := range subscribers {
		for _, t := range s.LowBalance {
			if t.CreditType != c.CreditType || c.Before.Available() < t.Below || c.After.Available() >= t.Below {
				continue
			}
			if to[t] == nil {
				crossed = append(crossed, t)
			}
			to[t] = append(to[t], s.EndpointID)
		}
	}
	var notices []Notice
	for _, t := range crossed {
		ref, err := newID()
		if err != nil {
			return nil, err
		}
		n, err := notice(ref, BalanceLow, c, api.BalanceLow{
			Customer: c.Customer, CreditType: c.CreditType, Below: t.Below.String(),
			Balance: balanceOf(c.After), MovementID: movementID(c),
		})
		if err != nil {
			return nil, err
		}
		n.Endpoints = to[t]
		notices = append(notices, n)
	}
	return notices, nil
}

func movementID(c *Change) *string {
	if len(c.Movements) == 0 {
		return nil
	}
	return &c.Movements[0].ID
}

func notice(ref string, t Type, c *Change, data any) (Notice, error) {
	m, err := newMessage(ref, t, c.ProjectID, c.At, data)
	return Notice{Message: m}, err
}

// newMessage fixes the bytes of a message.
func newMessage(ref string, t Type, projectID string, at time.Time, data any) (Message, error) {
	body, err := json.Marshal(api.WebhookPayload{Type: string(t), Timestamp: api.TimeText(at), Data: data})
	if err != nil {
		return Message{}, fmt.Errorf("encode a message of type %s: %w", t, err)
	}
	return Message{ID: MessageID(ref), ProjectID: projectID, Type: t, Body: body, At: at}, nil
}

func balanceOf(b credit.Balance) api.Balance {
	return api.Balance{Posted: b.Posted.String(), Held: b.Held.String(), Available: b.Available().String()}
}
