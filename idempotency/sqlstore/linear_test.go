package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/idempotency/sqlstore"
)

// call is one request of a history.
type call struct {
	kind      string // run, judge or find
	key, body string
	refuse    bool   // the work refuses
	answer    string // what the work answers otherwise
}

// known is what is known of one key: the body that took it and its answer.
type known struct{ body, answer string }

// sequential is what one request after the other would hear. Keys have nothing
// to do with one another.
var sequential = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(call).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return known{} },
	Step: func(state, input, output any) (bool, any) {
		before, c := state.(known), input.(call)
		switch {
		case c.kind == "find":
			return output == "found "+before.answer, before
		case before.answer == "" && c.kind == "judge":
			return output == "fresh", before
		case before.answer == "" && c.refuse:
			return output == "refused", before
		case before.answer == "":
			return output == "done "+c.answer, known{c.body, c.answer}
		case before.body != c.body:
			return output == "conflict", before
		default:
			return output == "replayed "+before.answer, before
		}
	},
}

// history records what each of several clients asked and heard.
type history struct {
	time atomic.Int64
	mu   sync.Mutex
	all  []porcupine.Operation
}

func (h *history) do(client int, c call, do func(call) string) {
	o := porcupine.Operation{ClientId: client, Input: c, Call: h.time.Add(1)}
	o.Output = do(c)
	o.Return = h.time.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, o)
}

func (h *history) linearizable() bool {
	return porcupine.CheckOperationsTimeout(sequential, h.all, time.Minute) == porcupine.Ok
}

// ask does what a call says and returns what was heard.
func (f *fixture) ask(ctx context.Context, c call) string {
	r := request(idempotency.CreditMovement(day), c.key, c.body)
	var result idempotency.Result
	var err error
	fresh := false
	switch c.kind {
	case "find":
		rec, found, err := f.Find(ctx, r.Ref())
		if err != nil || !found {
			return fmt.Sprint("found ", errText(err))
		}
		return "found " + string(rec.Answer.Body)
	case "judge":
		result, fresh, err = f.Judge(ctx, r)
	default:
		result, err = f.Run(ctx, r, func(tx *sql.Tx) (idempotency.Answer, error) {
			if c.refuse {
				return idempotency.Answer{}, errRefused
			}
			return ok(c.answer), record(ctx, tx, c.key)
		})
	}
	switch {
	case errors.Is(err, errRefused):
		return "refused"
	case errors.Is(err, &idempotency.Error{Problem: idempotency.Mismatch}):
		return "conflict"
	case err != nil:
		return errText(err)
	case fresh:
		return "fresh"
	case result.Replayed:
		return "replayed " + string(result.Answer.Body)
	default:
		return "done " + string(result.Answer.Body)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error()
}

// Whatever runs at the same time, each key's requests hear what they would
// have heard one after the other, in an order that fits when they were asked
// and answered.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d sqlstore.Dialect) {
		f := newFixture(t, d)
		for round := range 5 {
			var h history
			atOnce(8, func(client int) {
				random := rand.New(rand.NewPCG(uint64(round), uint64(client)))
				for i := range 12 {
					c := call{
						kind:   []string{"run", "run", "judge", "find"}[random.IntN(4)],
						key:    fmt.Sprintf("%d.%d", round, random.IntN(4)),
						body:   fmt.Sprint(random.IntN(2)),
						refuse: random.IntN(2) == 0,
						answer: fmt.Sprintf("%d-%d", client, i),
					}
					h.do(client, c, func(c call) string { return f.ask(t.Context(), c) })
				}
			})
			if !h.linearizable() {
				t.Errorf("round %d is not linearizable: %+v", round, h.all)
			}
			for key := range 4 {
				if n := f.units(t, fmt.Sprintf("%d.%d", round, key)); n > 1 {
					t.Errorf("key %d.%d: %d units of work", round, key, n)
				}
			}
		}
	})
}

// The checker finds what is wrong with the textbook form, so it can fail.
func TestTextbookIsNotLinearizable(t *testing.T) {
	t.Parallel()
	f, b := newTextbook(t, sqlstore.PostgreSQL)
	var met sync.WaitGroup
	met.Add(2)
	b.looked = func() { met.Done(); met.Wait() }
	var h history
	atOnce(2, func(client int) {
		h.do(client, call{kind: "run", key: "k", body: "1", answer: "charged"}, func(call) string {
			replayed, err := b.run(t.Context(), "k", func(tx *sql.Tx) error {
				_, err := charge100(t.Context(), tx)
				return err
			})
			switch {
			case errors.Is(err, errInsufficient):
				return "refused"
			case err != nil:
				return errText(err)
			case replayed:
				return "replayed charged"
			default:
				return "done charged"
			}
		})
	})
	if h.linearizable() || f.units(t, "charge") != 1 {
		t.Errorf("the checker takes %+v, %d entries", h.all, f.units(t, "charge"))
	}
	h.all = h.all[:0]
	h.do(0, call{kind: "run", key: "k", body: "1", answer: "charged"}, func(call) string { return "done charged" })
	h.do(1, call{kind: "run", key: "k", body: "1", answer: "charged"}, func(call) string { return "replayed charged" })
	if !h.linearizable() {
		t.Error("the checker does not take a right history")
	}
}
