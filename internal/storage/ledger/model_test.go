package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/credit/credittest"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

// world is the real ledger and what should be in it.
type world struct {
	*bench

	t       *testing.T
	clock   time.Time
	round   int // customers and keys of a round are its own
	models  map[string]*credittest.Model
	keys    map[string]*keyModel
	open    []string // holds: customer/id
	amounts map[string]int
}

// keyModel is what a key names.
type keyModel struct {
	facts, body, answer string
	at                  time.Time
}

const kept = time.Hour // see newBench

func (w *world) customer(t *rapid.T) string {
	return fmt.Sprintf("%s of %d", rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "customer"), w.round)
}

// pass lets time do what it does to a customer that is about to be touched.
func (w *world) pass(customer string) *credittest.Model {
	m := w.models[customer]
	if m == nil {
		return nil
	}
	for _, id := range m.Pass(w.clock) {
		w.open = slices.DeleteFunc(w.open, func(one string) bool { return one == customer+"/"+id })
	}
	return m
}

// move is a topup, charge or adjustment with one of few keys.
func (w *world) move(t *rapid.T) {
	kind := rapid.SampledFrom([]credit.Kind{credit.Topup, credit.Topup, credit.Charge, credit.Charge, credit.Adjust}).Draw(t, "kind")
	n := rapid.IntRange(1, 6).Draw(t, "amount")
	if kind == credit.Adjust && rapid.Bool().Draw(t, "negative") {
		n = -n
	}
	g := credit.Grant{Priority: 50}
	if kind == credit.Topup {
		g.Priority = rapid.SampledFrom([]int{10, 50, 90}).Draw(t, "priority")
		if hours := rapid.IntRange(0, 3).Draw(t, "expires"); hours > 0 {
			g.ExpiresAt = w.clock.Add(time.Duration(hours) * 40 * time.Minute)
		}
	}
	customer := w.customer(t)
	key := fmt.Sprintf("%d of %d", rapid.IntRange(0, 12).Draw(t, "key"), w.round)
	body := fmt.Sprintf(`{"credit_type":"main","amount":"%s","note":"%s"}`, credit.Amount(n), rapid.SampledFrom([]string{"", "x"}).Draw(t, "note"))
	moved, err := w.service.Move(w.t.Context(), credit.MoveParams{
		ProjectID: w.project, Customer: customer, Kind: kind, Key: key, Body: []byte(body),
		Decode: func() (credit.Move, error) {
			return credit.Move{CreditType: "main", Amount: credit.Amount(n), Grant: g}, nil
		},
		Render: func(m *credit.Movement, b credit.Balance) ([]byte, error) {
			return json.Marshal([]string{m.ID, b.Posted.String(), b.Held.String()})
		},
	})
	facts := fmt.Sprint(kind, customer, n)
	if k := w.keys[key]; k != nil {
		w.repeat(t, k, keyModel{facts: facts, body: body}, moved, err)
		return
	}
	m := w.pass(customer)
	if m == nil && kind == credit.Topup {
		m = credittest.New(false)
		w.models[customer] = m
	}
	want := api.Code("")
	switch {
	case m == nil:
		want = api.CodeCustomerNotFound
	case kind == credit.Topup:
		m.Topup(n, credittest.Grant{Name: key, Priority: g.Priority, Expires: g.ExpiresAt, Created: w.clock})
	case kind == credit.Adjust && n > 0:
		m.Add(n)
	case !m.Spend(max(n, -n)):
		want = api.CodeInsufficientCredits
	}
	if want != "" {
		if fault.CodeOf(err) != want {
			t.Fatalf("%v, want %s", err, want)
		}
		return
	}
	if err != nil || moved.Replayed {
		t.Fatalf("%+v %v", moved, err)
	}
	w.keys[key] = &keyModel{facts: facts, body: body, answer: string(moved.Answer.Body), at: w.clock}
	if got, want := string(moved.Answer.Body), fmt.Sprintf(`"%s","%s"]`, credit.Amount(m.Posted()), credit.Amount(m.Held())); !strings.HasSuffix(got, want) {
		t.Fatalf("answered %s, want %s", got, want)
	}
}

// repeat checks what a request hears whose key is taken.
func (w *world) repeat(t *rapid.T, k *keyModel, asked keyModel, moved credit.Moved, err error) {
	t.Helper()
	expired := !w.clock.Before(k.at.Add(kept))
	same := k.facts == asked.facts && (expired || k.body == asked.body)
	switch {
	case !same:
		if !errors.Is(err, mismatch) {
			t.Fatalf("another request with a key that is taken: %+v %v", moved, err)
		}
	case err != nil || !moved.Replayed:
		t.Fatalf("a repeat: %+v %v", moved, err)
	case !expired:
		if moved.Answer == nil || string(moved.Answer.Body) != k.answer {
			t.Fatalf("a replay of %s is %+v", k.answer, moved.Answer)
		}
	case moved.Answer != nil || !strings.Contains(k.answer, moved.Movement.ID):
		t.Fatalf("a late replay of %s is %+v", k.answer, moved)
	}
}

func (w *world) place(t *rapid.T) {
	customer, n := w.customer(t), rapid.IntRange(1, 6).Draw(t, "amount")
	p := credit.PlaceParams{
		ProjectID: w.project, Customer: customer, HoldID: fmt.Sprintf("h%d-%d", w.round, len(w.amounts)), CreditType: "main",
		Amount: credit.Amount(n), Body: []byte(`{}`),
	}
	if hours := rapid.IntRange(0, 3).Draw(t, "expires"); hours > 0 {
		p.ExpiresAt = w.clock.Add(time.Duration(hours) * 30 * time.Minute)
	}
	_, err := w.service.PlaceHold(w.t.Context(), p)
	m := w.pass(customer)
	switch {
	case m == nil:
		if fault.CodeOf(err) != api.CodeCustomerNotFound {
			t.Fatal(err)
		}
	case !m.Place(p.HoldID, n, p.ExpiresAt):
		if fault.CodeOf(err) != api.CodeInsufficientCredits {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatal(err)
	default:
		w.open = append(w.open, customer+"/"+p.HoldID)
		w.amounts[p.HoldID] = n
	}
}

// end captures or releases a hold that was open when it was last looked at.
func (w *world) end(t *rapid.T) {
	if len(w.open) == 0 {
		return
	}
	name := rapid.SampledFrom(w.open).Draw(t, "hold")
	customer, holdID, _ := strings.Cut(name, "/")
	n := rapid.IntRange(-1, w.amounts[holdID]).Draw(t, "used")
	p := credit.CloseParams{ProjectID: w.project, Customer: customer, HoldID: holdID}
	var err error
	if amount := credit.Amount(n); n < 0 {
		_, err = w.service.ReleaseHold(w.t.Context(), p)
	} else {
		p.Amount = &amount
		_, err = w.service.CaptureHold(w.t.Context(), p)
	}
	m := w.pass(customer)
	if !slices.Contains(w.open, name) {
		if fault.CodeOf(err) != api.CodeConflict {
			t.Fatalf("a hold that has expired: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.End(holdID, max(n, 0), w.clock)
	w.open = slices.DeleteFunc(w.open, func(one string) bool { return one == name })
}

func (w *world) wait(t *rapid.T) {
	w.clock = w.clock.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "minutes")) * time.Minute)
}

func (w *world) sweep(t *rapid.T) {
	if _, err := w.db.Keys().Sweep(w.t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Sweep(w.t.Context()); err != nil {
		t.Fatal(err)
	}
	for customer := range w.models {
		w.pass(customer)
	}
}

// check compares balances: the model's clock stands where the ledger was last
// told the time.
func (w *world) check(t *rapid.T) {
	t.Helper()
	for customer, m := range w.models {
		b, found, err := ledger.New(w.db).FindBalance(w.t.Context(), w.project, customer, "main")
		if err != nil || !found || int(b.Posted) != m.Posted() || int(b.Held) != m.Held() || b.Available() < 0 {
			t.Fatalf("%s has %d/%d, %v; the model %d/%d", customer, b.Posted, b.Held, err, m.Posted(), m.Held())
		}
	}
}

// Whatever is asked for, with whatever key, before or after answers and grants
// and holds have expired and sweeps have run: the ledger is as the model.
func TestLedgerAgainstModel(t *testing.T) {
	t.Parallel()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, clock: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}
			now := func() time.Time { return w.clock }
			o := open(t, storagetest.Accounts)
			o.Clock = now
			w.bench = newBenchOn(t, o)
			w.bench.now = now
			rapid.Check(t, func(t *rapid.T) {
				w.round++
				w.models, w.keys = map[string]*credittest.Model{}, map[string]*keyModel{}
				w.open, w.amounts = nil, map[string]int{}
				t.Repeat(map[string]func(*rapid.T){
					"move": w.move, "move again": w.move, "place": w.place, "end": w.end, "wait": w.wait, "sweep": w.sweep, "": w.check,
				})
			})
			w.audit(t)
		})
	}
}
