package sdk

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var randomScenarios = []scenario{
	{"moves at random", func(c *conversation) { (&mover{c, rand.New(rand.NewPCG(1, 2)), []string{anyID}, 0}).run(90) }},
	{"items at random", randomItems},
}

// mover makes moves at random, the same ones with every server: grants of all
// priorities, holds, reversals, on a credit type that may go below zero and on one
// that may not.
type mover struct {
	*conversation
	random    *rand.Rand
	movements []string
	keys      int
}

func (m *mover) run(n int) {
	m.put("/v1/credit-types/debt", `{"allow_negative":true}`).wants(201)
	m.put("/v1/customers/ada", ``).wants(201)
	for range n {
		m.step()
		m.get("/v1/customers/ada").wants(200)
		m.get("/v1/customers/ada/grants").wants(200)
	}
	m.get("/v1/movements?limit=200").wants(200)
	m.get("/v1/customers/ada/holds?limit=200").wants(200)
}

// one returns one of several texts.
func (m *mover) one(of ...string) string { return of[m.random.IntN(len(of))] }

func (m *mover) creditType() string { return m.one("main", "main", "debt") }

func (m *mover) amount() string { return fmt.Sprintf("%d.%d", m.random.IntN(12), m.random.IntN(10)) }

func (m *mover) step() {
	hold := "/v1/customers/ada/holds/h" + m.one("1", "2", "3", "4", "5", "6", "7", "8", "9")
	m.keys++
	key := fmt.Sprintf("k%d", m.keys)
	move := fmt.Sprintf(`{"credit_type":%q,"amount":%q`, m.creditType(), m.amount())
	switch m.random.IntN(10) {
	case 0, 1, 2:
		rest := m.one(``, `,"priority":10`, `,"priority":50`, `,"priority":90`) + m.one(``, `,"expires_at":"2098-01-01T00:00:00Z"`, `,"expires_at":"2099-01-01T00:00:00Z"`)
		m.note(m.post("/v1/customers/ada/topup", key, move+rest+`}`))
	case 3, 4:
		m.note(m.post("/v1/customers/ada/charge", key, move+`}`))
	case 5:
		m.note(m.post("/v1/customers/ada/adjust", key, strings.Replace(move, `"amount":"`, `"amount":"`+m.one("", "-"), 1)+`}`))
	case 6, 7:
		m.put(hold, move+`}`)
	case 8:
		m.note(m.post(hold+m.one("/capture", "/capture", "/release"), "", m.one(``, `{"amount":"1"}`, `{"amount":"0"}`)))
	default:
		m.note(m.post("/v1/movements/"+m.one(m.movements...)+"/reversal", "", m.one(``, `{"amount":"1"}`, `{"amount":"2.5"}`)))
	}
}

// note keeps the movement of an answer, to be reversed later.
func (m *mover) note(a *answer) {
	if id, ok := a.at("movement.id").(string); ok {
		m.movements = append(m.movements, id)
	}
}

// randomItems sends items of which each member may be right or wrong, in any
// order, twice.
func randomItems(c *conversation) {
	random := rand.New(rand.NewPCG(3, 4))
	values := map[string][]string{
		"event":      {`"e"`, `"e"`, `"e"`, `""`, `7`, `"\u00e9\n"`, `null`},
		"event_id":   {`null`, `"` + uuid1 + `"`, `"` + strings.ToUpper(uuid1) + `"`, `"x"`, `""`, `{"a":1}`},
		"anon_id":    {`"a"`, `"a"`, `null`, `""`, `false`},
		"user_id":    {`"u"`, `"u"`, `null`, `"\ud83d\ude00"`, `[]`},
		"session_id": {`"s"`, `null`, `0`},
		"ts":         {`null`, `"2026-05-01T10:00:00Z"`, `1777629600`, `1777629600000`, `"x"`},
		"properties": {`{}`, `{"a":{"b":[1,2,{"c":"\u0000"}]}}`, `{"a":1e400}`, `{"a":-0.0e-5}`, `[]`, `null`, `{"a":1,"\u0061":2}`},
		"context":    {`{}`, `{"library":{"name":"x"}}`, `"c"`, `null`},
		"unknown":    {`1`, `{"b":{"b":1},"b":2}`, `[[]]`},
	}
	names := sorted(values)
	for range 6 {
		var list []string
		for range 80 {
			var members []string
			for _, i := range random.Perm(len(names)) {
				if of := values[names[i]]; random.IntN(4) > 0 {
					members = append(members, fmt.Sprintf("%q:%s", names[i], of[random.IntN(len(of))]))
				}
			}
			list = append(list, "{"+strings.Join(members, ", ")+"}")
		}
		for range 2 {
			c.track(c.server(), items(list...)).wants(202)
		}
	}
}
