package sdk

import (
	"fmt"
	"net/http"
	"strings"
)

var creditScenarios = []scenario{
	{"keys of movements", movementKeys},
	{"movements and their repeats", movements},
	{"one key, one unit of work", oneUnit},
	{"movements that are not valid", invalidMovements},
	{"whole balance", wholeBalance},
	{"six from five", sixFromFive},
	{"fifty first times", fiftyFirstTimes},
	{"customers", customers},
	{"credit types", creditTypes},
	{"lists of movements", listsOfMovements},
}

// move moves credits of the type main.
func (c *conversation) move(kind, customer, key, amount string) *answer {
	c.Helper()
	return c.post("/v1/customers/"+customer+"/"+kind, key, fmt.Sprintf(`{"credit_type":"main","amount":%q}`, amount))
}

func movementKeys(c *conversation) {
	const path, body = "/v1/customers/ada/topup", `{"credit_type":"main","amount":"1"}`
	send := func(values ...string) *answer {
		return c.send(request{path: path, body: body, header: http.Header{"Idempotency-Key": values}})
	}
	send().refuses(400, "idempotency_key_required").has("error.details.header", `"Idempotency-Key"`)
	send("").refuses(400, "idempotency_key_required")
	send(" \t ").refuses(400, "idempotency_key_required")
	send("a", "a").refuses(422, "invalid_request")
	send("a", "").refuses(422, "invalid_request")
	send(strings.Repeat("x", 191)).refuses(422, "invalid_request")
	send(strings.Repeat("é", 191)).refuses(422, "invalid_request")
	send("a\xffb").refuses(422, "invalid_request")
	send("a\u0085b").refuses(422, "invalid_request")
	c.get("/v1/customers/ada").refuses(404, "customer_not_found") // nothing was made
	for i, key := range []string{strings.Repeat("x", 190), strings.Repeat("é", 190), "abc", `"abc"`, "a, b", "x"} {
		send(key).wants(200).replayed(false).has("balance.posted", fmt.Sprintf(`"%d"`, i+1))
	}
	send("  abc  ").wants(200).replayed(true)
}

func movements(c *conversation) {
	first := c.move("topup", "ada", "t1", "10.50").wants(200).replayed(false).has("movement.amount", `"10.5"`).has("balance.available", `"10.5"`)
	again := c.move("topup", "ada", "t1", "10.50").wants(200).replayed(true)
	if again.raw != first.raw {
		c.Errorf("%s: a repeat got\n%s\nand the first\n%s", c.name, again.raw, first.raw)
	}
	c.move("topup", "ada", "t2", "10.50").wants(200).replayed(false).has("balance.posted", `"21"`)
	c.move("charge", "ada", "c1", "1").wants(200).has("movement.delta", `"-1"`)
	c.move("adjust", "ada", "a1", "-2").wants(200).has("movement.amount", `"-2"`)
	c.move("adjust", "ada", "a2", "3.000001").wants(200).has("balance.posted", `"21.000001"`)
	c.move("charge", "ada", "c1", "1").wants(200).replayed(true).has("balance.posted", `"20"`) // as it was
	for _, kind := range []string{"charge", "adjust"} {
		c.move(kind, "nobody", "n1", "1").refuses(404, "customer_not_found").has("error.details.key", `"free"`)
	}
	// A refusal leaves the key free, for any body.
	c.move("charge", "ada", "c2", "100").refuses(402, "insufficient_credits").has("error.details.balance.available", `"21.000001"`).has("error.details.key", `"free"`)
	c.move("adjust", "ada", "c2", "-100").refuses(402, "insufficient_credits")
	c.get("/v1/idempotency-keys?key=c2").refuses(404, "not_found")
	c.move("topup", "ada", "t3", "100").wants(200)
	c.move("charge", "ada", "c2", "99").wants(200).replayed(false)
	c.post("/v1/customers/ada/charge", "c3", `{"credit_type":"other","amount":"1"}`).refuses(402, "insufficient_credits").has("error.details.balance.posted", `"0"`)
	c.post("/v1/customers/ada/topup", "t4", `{"credit_type":"other","amount":7,"reason":"gift","metadata":{"a":[1]},"priority":10,"expires_at":"2099-01-01T00:00:00+01:00"}`).wants(200)
	c.post("/v1/customers/ada/charge", "c4", `{"amount":0.5,"credit_type":"other","metadata":null,"reason":null}`).wants(200)
	c.get("/v1/customers/ada").wants(200).has("balances.other.posted", `"6.5"`)
	c.get("/v1/customers/ada/grants").wants(200).has("items.0.remaining", `"6.5"`)
	c.get("/v1/customers/ada/balance").wants(200)
}

func oneUnit(c *conversation) {
	made := c.move("topup", "ada", "order-1", "10").wants(200)
	c.move("topup", "bob", "other", "10").wants(200)
	for _, one := range []struct{ kind, customer, amount, differs string }{
		{"charge", "ada", "10", `["method"]`},
		{"adjust", "ada", "10", `["method"]`},
		{"topup", "bob", "10", `["customer"]`},
		{"topup", "ada", "11", `["body"]`},
		{"charge", "nobody", "10", `["customer","method"]`},
		{"topup", "ada", "-1", `["body"]`},
	} {
		c.move(one.kind, one.customer, "order-1", one.amount).refuses(409, "idempotency_conflict").has("error.details.differs", one.differs).
			has("error.details.unit.id", `"`+made.text("movement.id")+`"`).has("error.details.unit.status", `"succeeded"`).has("error.details.key", `"taken"`)
	}
	c.post("/v1/customers/ada/topup", "order-1", `{"amount":"10","credit_type":"main"}`).refuses(409, "idempotency_conflict").has("error.details.same_json", "true")
	c.post("/v1/operations/execute", "order-1", `{"flow":"nothing","input":{}}`).refuses(409, "idempotency_conflict")
	c.post("/v1/customers/ada/topup", "order-1", ``).refuses(409, "idempotency_conflict")
	c.move("topup", "ada", "order-1", "10").wants(200).replayed(true)
	c.get("/v1/movements?customer=ada").wants(200).has("items.1", "null") // one entry
	c.post("/v1/movements/"+made.text("movement.id")+"/reversal", "", ``).wants(201)
	c.move("charge", "ada", "order-1", "10").refuses(409, "idempotency_conflict").has("error.details.unit.status", `"reversed"`)
	found := c.quietly(request{method: http.MethodGet, path: "/v1/idempotency-keys?key=order-1"}).wants(200).has("unit.status", `"reversed"`)
	if found.at("response_expires_at") == nil || found.text("first_seen_at") == "" {
		c.Errorf("%s: %s", c.name, found.raw)
	}
	c.untilCounted("/v1/idempotency-keys?key=order-1", 1, 10)
	for _, query := range []string{"", "?key=", "?key=a&key=b"} {
		c.get("/v1/idempotency-keys"+query).refuses(422, "validation_failed")
	}
	c.get("/v1/idempotency-keys?key="+strings.Repeat("x", 191)).refuses(404, "not_found")
}

// untilCounted waits until all that came with a key is counted: counts may lag.
func (c *conversation) untilCounted(path string, repeats, conflicts float64) {
	c.Helper()
	c.until("the counts are right", func() bool {
		a := c.quietly(request{method: http.MethodGet, path: path}).wants(200)
		return a.at("repeats") == repeats && a.at("conflicts") == conflicts
	})
}

func invalidMovements(c *conversation) {
	c.move("topup", "ada", "first", "999999999999.999999").wants(200)
	for i, body := range []string{
		`{}`, `{"amount":"1"}`, `{"credit_type":"main"}`, `{"credit_type":"","amount":"1"}`, `{"credit_type":" main","amount":"1"}`,
		`{"credit_type":"a\nb","amount":"1"}`, `{"credit_type":"` + strings.Repeat("é", 65) + `","amount":"1"}`, `{"credit_type":7,"amount":"1"}`,
		`{"credit_type":"main","amount":null}`, `{"credit_type":"main","amount":true}`, `{"credit_type":"main","amount":{}}`, `{"credit_type":"main","amount":"0"}`,
		`{"credit_type":"main","amount":0}`, `{"credit_type":"main","amount":"-0"}`, `{"credit_type":"main","amount":""}`, `{"credit_type":"main","amount":"1."}`,
		`{"credit_type":"main","amount":".5"}`, `{"credit_type":"main","amount":"01"}`, `{"credit_type":"main","amount":"+1"}`, `{"credit_type":"main","amount":" 1"}`,
		`{"credit_type":"main","amount":1e3}`, `{"credit_type":"main","amount":"1e3"}`, `{"credit_type":"main","amount":"0.0000001"}`,
		`{"credit_type":"main","amount":"1000000000000"}`, `{"credit_type":"main","amount":"999999999999.999999"}`,
		`{"credit_type":"main","amount":"1","reason":7}`, `{"credit_type":"main","amount":"1","reason":"` + strings.Repeat("r", 501) + `"}`,
		`{"credit_type":"main","amount":"1","reason":"a\u0001"}`, `{"credit_type":"main","amount":"1","metadata":[]}`,
		`{"credit_type":"main","amount":"1","metadata":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, `{"credit_type":"main","amount":"1","unknown":1}`,
		`{"credit_type":"main","amount":"1","Amount":"1"}`, `[]`, `7`, `null`,
	} {
		c.post("/v1/customers/ada/topup", fmt.Sprintf("t%d", i), body).refuses(422, "invalid_request").has("error.details.key", `"free"`)
	}
	for i, rest := range []string{
		`"priority":101`, `"priority":-1`, `"priority":1.5`, `"priority":"1"`, `"expires_at":"never"`, `"expires_at":"2020-01-01T00:00:00Z"`, `"expires_at":7`,
	} {
		c.post("/v1/customers/ada/topup", fmt.Sprintf("p%d", i), `{"credit_type":"x","amount":"1",`+rest+`}`).refuses(422, "invalid_request")
	}
	c.post("/v1/customers/ada/charge", "c1", `{"credit_type":"main","amount":"1","priority":1}`).refuses(422, "invalid_request")
	c.move("charge", "ada", "c1", "-1").refuses(422, "invalid_request")
	c.move("adjust", "ada", "c1", "0").refuses(422, "invalid_request")
	c.post("/v1/customers/ada/charge", "c1", `{"credit_type":"main","amount":"1","amount":"1"}`).refuses(400, "invalid_json").has("error.details.key", `"free"`)
	c.post("/v1/customers/ada/charge", "c1", `{"credit_type":"main","amount":"1"}{}`).refuses(400, "invalid_json")
	c.get("/v1/customers/ada").wants(200).has("balances.main.posted", `"999999999999.999999"`)
	c.get("/v1/movements").wants(200).has("items.1", "null") // nothing else was moved
}

// wholeBalance: eight at once charge everything with one key.
func wholeBalance(c *conversation) {
	c.move("topup", "ada", "t", "100").wants(200)
	charge := request{path: "/v1/customers/ada/charge", key: "c", body: `{"credit_type":"main","amount":"100"}`}
	if statuses := c.atOnce(8, charge); statuses[200] != 8 {
		c.Errorf("%s: %v", c.name, statuses)
	}
	c.send(charge).wants(200).replayed(true).has("balance.posted", `"0"`)
	c.get("/v1/movements?kind=charge").wants(200).has("items.1", "null")
	found := c.quietly(request{method: http.MethodGet, path: "/v1/idempotency-keys?key=c"}).wants(200)
	found.has("conflicts", "0")
}

func sixFromFive(c *conversation) {
	c.move("topup", "ada", "t", "5000").wants(200)
	for i := range 5 {
		c.move("charge", "ada", fmt.Sprintf("c%d", i), "1000").wants(200)
	}
	c.move("charge", "ada", "c5", "1000").refuses(402, "insufficient_credits").has("error.details.key", `"free"`)
	c.move("topup", "ada", "t2", "1000").wants(200)
	c.move("charge", "ada", "c5", "1000").wants(200).replayed(false).has("balance.available", `"0"`)
}

func fiftyFirstTimes(c *conversation) {
	topup := request{path: "/v1/customers/new/topup", key: "first", body: `{"credit_type":"main","amount":"1"}`}
	if statuses := c.atOnce(50, topup); statuses[200] != 50 {
		c.Errorf("%s: %v", c.name, statuses)
	}
	c.get("/v1/customers/new").wants(200).has("balances.main.posted", `"1"`)
}

// expiredAnswers: what a repeat hears when the first answer is not kept any more.
func expiredAnswers(c *conversation) {
	c.move("topup", "ada", "t", "10").wants(200)
	first := request{path: "/v1/customers/ada/charge", key: "c", body: `{"credit_type":"main","amount":"5"}`}
	c.send(first).wants(200).replayed(false)
	c.until("the first answer is not kept any more", func() bool { return c.quietly(first).wants(200).at("response_expired") == true })
	c.send(first).wants(200).replayed(true).has("response_expired", "true").has("balance.posted", `"5"`)
	for _, same := range []string{`{"amount":5.0,"credit_type":"main","reason":"another"}`, `{"credit_type":"main","amount":"5.000"}`} {
		c.post(first.path, "c", same).wants(200).replayed(true).has("response_expired", "true")
	}
	c.move("charge", "ada", "c", "6").refuses(409, "idempotency_conflict").has("error.details.differs", `["amount"]`)
	c.move("adjust", "ada", "c", "5").refuses(409, "idempotency_conflict").has("error.details.differs", `["method"]`)
	c.move("charge", "bob", "c", "5").refuses(409, "idempotency_conflict").has("error.details.differs", `["customer"]`)
	c.post(first.path, "c", `{"credit_type":"other","amount":"5"}`).refuses(409, "idempotency_conflict").has("error.details.differs", `["credit_type"]`)
	c.post(first.path, "c", `{`).refuses(409, "idempotency_conflict")
	c.get("/v1/movements?kind=charge").wants(200).has("items.1", "null")
}

func customers(c *conversation) {
	c.get("/v1/customers").wants(200).has("items", "[]")
	c.put("/v1/customers/ada", ``).wants(201).has("metadata", "{}").has("balances", "{}")
	c.put("/v1/customers/ada", `{"metadata":{"plan":"pro"}}`).wants(200).has("metadata.plan", `"pro"`)
	c.put("/v1/customers/ada", `{}`).wants(200).has("metadata.plan", `"pro"`)
	c.put("/v1/customers/ada", `{"metadata":null}`).wants(200).has("metadata.plan", `"pro"`)
	patch := func(id, body string) *answer {
		return c.send(request{method: http.MethodPatch, path: "/v1/customers/" + id, body: body})
	}
	patch("ada", `{"metadata":{}}`).wants(200).has("metadata", "{}")
	patch("nobody", `{"metadata":{}}`).refuses(404, "customer_not_found")
	for _, body := range []string{`{}`, `{"metadata":null}`, `{"metadata":7}`, `{"metadata":{},"x":1}`, `[]`, `{"metadata":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`} {
		patch("ada", body).refuses(422, "invalid_request")
	}
	patch("ada", ``).refuses(400, "invalid_json")
	for _, id := range []string{strings.Repeat("x", 201), "%01", "%FF"} {
		c.put("/v1/customers/"+id, ``).refuses(422, "invalid_request")
		c.get("/v1/customers/"+id).refuses(404, "customer_not_found")
		patch(id, `{"metadata":{}}`).refuses(404, "customer_not_found")
	}
	c.put("/v1/customers/"+strings.Repeat("%C3%A9", 200), ``).wants(201)
	for i := range 3 {
		c.put(fmt.Sprintf("/v1/customers/c%d", i), `{}`).wants(201)
	}
	a := c.get("/v1/customers?limit=2").wants(200).has("items.0.customer", `"c2"`)
	a = c.get("/v1/customers?limit=2&cursor="+a.text("next_cursor")).wants(200).has("items.0.customer", `"c0"`)
	c.get("/v1/customers?limit=2&cursor="+a.text("next_cursor")).wants(200).has("items.0.customer", `"ada"`).has("next_cursor", "null")
	for _, query := range []string{"?limit=0", "?limit=-1", "?limit=201", "?cursor=x", "?cursor=", "?cursor=LTE", "?cursor=bm8"} {
		c.get("/v1/customers"+query).refuses(422, "validation_failed")
	}
	c.get("/v1/customers?limit=200&unknown=1").wants(200)
}

func creditTypes(c *conversation) {
	c.put("/v1/credit-types/debt", `{"allow_negative":true}`).wants(201)
	c.put("/v1/credit-types/debt", `{"allow_negative":true}`).wants(200)
	c.put("/v1/credit-types/debt", ``).refuses(409, "conflict").has("error.details.allow_negative", "true")
	c.put("/v1/credit-types/plain", ``).wants(201)
	c.put("/v1/credit-types/plain", `{"allow_negative":null}`).wants(200)
	c.put("/v1/credit-types/plain", `{"allow_negative":1}`).refuses(422, "invalid_request")
	for _, name := range []string{"%20x", strings.Repeat("x", 65), "%01"} {
		c.put("/v1/credit-types/"+name, ``).refuses(422, "invalid_request")
	}
	c.move("topup", "ada", "t", "1").wants(200) // makes main
	a := c.get("/v1/credit-types?limit=2").wants(200).has("items.0.name", `"debt"`)
	c.get("/v1/credit-types?limit=2&cursor="+a.text("next_cursor")).wants(200).has("items.0.name", `"main"`)
	debt := func(kind, key, amount string) *answer {
		return c.post("/v1/customers/ada/"+kind, key, `{"credit_type":"debt","amount":"`+amount+`"}`)
	}
	debt("topup", "d1", "1").wants(200)
	debt("charge", "d2", "5").wants(200).has("balance.available", `"-4"`)
	debt("charge", "d3", "999999999999").refuses(422, "invalid_request").has("error.details.field", `"amount"`)
	debt("adjust", "d4", "-1").wants(200).has("balance.posted", `"-5"`)
	debt("topup", "d5", "7").wants(200).has("balance.posted", `"2"`)
}

func listsOfMovements(c *conversation) {
	for i := range 5 {
		c.move("topup", "ada", fmt.Sprintf("t%d", i), fmt.Sprint(i+1)).wants(200)
	}
	c.move("topup", "bob", "b", "1").wants(200)
	c.move("charge", "bob", "b2", "1").wants(200)
	a := c.get("/v1/movements?customer=ada&limit=3").wants(200).has("items.0.amount", `"5"`)
	c.get("/v1/movements?customer=ada&limit=3&cursor="+a.text("next_cursor")).wants(200).has("items.1.amount", `"1"`).has("next_cursor", "null")
	c.get("/v1/movements?kind=charge&credit_type=main").wants(200).has("items.0.customer", `"bob"`)
	c.get("/v1/movements?customer=nobody").wants(200).has("items", "[]")
	c.get("/v1/movements?to=2020-01-01T00:00:00Z").wants(200).has("items", "[]")
	c.get("/v1/movements?from=2020-01-01T00:00:00Z&limit=1").wants(200)
	for _, query := range []string{"?kind=gift", "?from=x", "?to=7", "?customer=" + strings.Repeat("x", 201), "?credit_type=%20x", "?kind=a&kind=b", "?limit=x"} {
		c.get("/v1/movements"+query).refuses(422, "validation_failed")
	}
	c.get("/v1/movements/" + a.text("items.0.id")).wants(200)
	c.get("/v1/movements/"+anyID).refuses(404, "not_found")
	c.get("/v1/movements/nothing").refuses(404, "not_found")
}
