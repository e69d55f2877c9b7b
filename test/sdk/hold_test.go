package sdk

import (
	"fmt"
	"net/http"
	"strings"
)

var holdScenarios = []scenario{
	{"holds", holds},
	{"holds that end otherwise", holdConflicts},
	{"holds that are not valid", invalidHolds},
	{"reversals", reversals},
	{"grants", grants},
}

func holds(c *conversation) {
	c.move("topup", "ada", "t", "10").wants(200)
	const one = "/v1/customers/ada/holds/h1"
	body := `{"credit_type":"main","amount":"4","reason":"r","metadata":{"a":1},"expires_at":"2099-01-01T00:00:00Z"}`
	c.put(one, body).wants(201).has("hold.state", `"open"`).has("balance.available", `"6"`)
	c.put(one, `{"amount":4.0,"expires_at":"2099-01-01T01:00:00+01:00","metadata":{"a":1.0},"reason":"r","credit_type":"main"}`).wants(200)
	c.put(one, `{"credit_type":"main","amount":"5"}`).refuses(409, "conflict")
	c.get(one).wants(200)
	c.move("charge", "ada", "c", "7").refuses(402, "insufficient_credits").has("error.details.balance.held", `"4"`)
	c.post(one+"/capture", "", `{"amount":"3"}`).wants(200).has("hold.captured", `"3"`).has("movement.kind", `"capture"`).has("balance.available", `"7"`)
	c.post(one+"/capture", "", `{"amount":3}`).wants(200)
	c.post(one+"/capture", "", ``).refuses(409, "conflict").has("error.details.state", `"captured"`)
	c.post(one+"/release", "", ``).refuses(409, "conflict").has("error.details.captured", `"3"`)
	c.put(one, body).wants(200).has("hold.state", `"captured"`)
	for i := range 3 {
		c.put(fmt.Sprintf("/v1/customers/ada/holds/l%d", i), `{"credit_type":"main","amount":"1"}`).wants(201)
	}
	c.post("/v1/customers/ada/holds/l0/release", "", ``).wants(200).has("hold.state", `"released"`)
	c.post("/v1/customers/ada/holds/l0/release", "", ``).wants(200)
	c.post("/v1/customers/ada/holds/l1/capture", "", ``).wants(200).has("movement.amount", `"1"`)
	a := c.get("/v1/customers/ada/holds?limit=2").wants(200).has("items.0.id", `"l2"`)
	c.get("/v1/customers/ada/holds?limit=2&cursor="+a.text("next_cursor")).wants(200).has("items.1.id", `"h1"`)
	c.get("/v1/customers/ada/holds?state=open").wants(200).has("items.1", "null")
	c.get("/v1/customers/ada/holds?state=gone").refuses(422, "validation_failed")
	c.get("/v1/customers/nobody/holds").refuses(404, "customer_not_found")
	c.get("/v1/customers/ada/balance").wants(200).has("balances.main.held", `"1"`)
	c.get("/v1/customers/ada/balance?at=2020-01-01T00:00:00Z").wants(200)
	c.get("/v1/customers/ada/balance?at=x").refuses(422, "validation_failed")
	c.get("/v1/customers/nobody/balance").refuses(404, "customer_not_found")
}

func holdConflicts(c *conversation) {
	c.move("topup", "ada", "t", "10").wants(200)
	place := func(id string) string {
		path := "/v1/customers/ada/holds/" + id
		c.put(path, `{"credit_type":"main","amount":"2"}`).wants(201)
		return path
	}
	zero := place("zero")
	c.post(zero+"/capture", "", `{"amount":"0"}`).wants(200).has("movement.amount", `"0"`).has("balance.posted", `"10"`)
	c.post("/v1/movements/"+c.get("/v1/movements?kind=capture").text("items.0.id")+"/reversal", "", ``).refuses(409, "conflict").has("error.details.kind", `"capture"`)
	released := place("released")
	c.post(released+"/release", "", ``).wants(200)
	c.post(released+"/capture", "", ``).refuses(409, "conflict").has("error.details.state", `"released"`)
	more := place("more")
	c.post(more+"/capture", "", `{"amount":"3"}`).refuses(422, "invalid_request").has("error.details.held", `"2"`)
	c.post(more+"/capture", "", `{"amount":"-1"}`).refuses(422, "invalid_request")
	c.post(more+"/capture", "", `{"amount":null,"reason":"x","metadata":{"b":2}}`).wants(200)
	for _, path := range []string{"/v1/customers/ada/holds/nothing", "/v1/customers/ada/holds/" + strings.Repeat("x", 201)} {
		c.get(path).refuses(404, "not_found")
		c.post(path+"/capture", "", ``).refuses(404, "not_found")
		c.post(path+"/release", "", ``).refuses(404, "not_found")
	}
	for _, action := range []string{"capture", "release"} {
		c.post("/v1/customers/nobody/holds/h/"+action, "", ``).refuses(404, "customer_not_found")
	}
	c.get("/v1/customers/nobody/holds/h").refuses(404, "not_found")
}

func invalidHolds(c *conversation) {
	c.put("/v1/customers/nobody/holds/h", `{"credit_type":"main","amount":"1"}`).refuses(404, "customer_not_found")
	c.put("/v1/customers/ada", ``).wants(201)
	for _, body := range []string{
		`{}`, `{"credit_type":"main","amount":"0"}`, `{"credit_type":"main","amount":"-1"}`, `{"credit_type":" x","amount":"1"}`, `{"credit_type":"main","amount":"x"}`,
		`{"credit_type":"main","amount":"1","expires_at":"2020-01-01T00:00:00Z"}`, `{"credit_type":"main","amount":"1","expires_at":"x"}`,
		`{"credit_type":"main","amount":"1","reason":"a\n"}`, `{"credit_type":"main","amount":"1","x":1}`,
	} {
		c.put("/v1/customers/ada/holds/h", body).refuses(422, "invalid_request")
	}
	c.put("/v1/customers/ada/holds/h", ``).refuses(400, "invalid_json")
	c.put("/v1/customers/ada/holds/h", `{"credit_type":"main","amount":"1"}`).refuses(402, "insufficient_credits").has("error.details.credit_type", `"main"`)
	c.put("/v1/customers/ada/holds/"+strings.Repeat("x", 201), `{"credit_type":"main","amount":"1"}`).refuses(422, "invalid_request")
	c.put("/v1/customers/%01/holds/h", `{"credit_type":"main","amount":"1"}`).refuses(422, "invalid_request")
	c.get("/v1/customers/ada/holds").wants(200).has("items", "[]")
	c.get("/v1/customers/ada").wants(200).has("balances", "{}")
}

func reversals(c *conversation) {
	topup := c.move("topup", "ada", "t", "10").wants(200).text("movement.id")
	charge := c.move("charge", "ada", "c", "4").wants(200).text("movement.id")
	adjust := c.move("adjust", "ada", "a", "-1").wants(200).text("movement.id")
	reverse := func(id, body string) *answer { return c.post("/v1/movements/"+id+"/reversal", "", body) }
	reverse(charge, `{"amount":"1.5","reason":"half"}`).wants(201).has("movement.reversal_of", `"`+charge+`"`).has("balance.posted", `"6.5"`)
	reverse(charge, `{"amount":1.50,"reason":"half"}`).wants(200)
	reverse(charge, `{"amount":"1.5"}`).refuses(409, "conflict").has("error.details.amount", `"1.5"`)
	reverse(charge, ``).refuses(409, "conflict")
	reverse(topup, ``).refuses(402, "insufficient_credits").has("error.details.balance.available", `"6.5"`)
	reverse(topup, `{"amount":"11"}`).refuses(422, "invalid_request").has("error.details.moved", `"10"`)
	reverse(topup, `{"amount":"0"}`).refuses(422, "invalid_request")
	reverse(topup, `{"amount":"x"}`).refuses(422, "invalid_request")
	reverse(topup, `{"amount":"-1"}`).refuses(422, "invalid_request")
	reverse(topup, `{"reason":7}`).refuses(422, "invalid_request")
	reverse(topup, `{`).refuses(400, "invalid_json")
	back := reverse(topup, `{"amount":"6","reason":null}`).wants(201).text("movement.id")
	reverse(back, ``).refuses(409, "conflict").has("error.details.kind", `"reversal"`)
	reverse(adjust, ``).wants(201).has("movement.delta", `"1"`)
	c.get("/v1/movements/"+charge).wants(200).has("reversal.amount", `"1.5"`)
	reverse(anyID, ``).refuses(404, "not_found")
	reverse("nothing", ``).refuses(404, "not_found")
	reverse("nothing", `{"amount":"-1"}`)
	reverse(anyID, `{"amount":"-1"}`)
	c.get("/v1/movements?kind=reversal").wants(200).has("items.3", "null")
}

// grants: lots are used in the order of priority, expiry and age.
func grants(c *conversation) {
	topup := func(key, rest string) string {
		return c.post("/v1/customers/ada/topup", key, `{"credit_type":"main","amount":"10"`+rest+`}`).wants(200).text("movement.id")
	}
	list := func() *answer { return c.get("/v1/customers/ada/grants").wants(200) }
	topup("base", ``)
	topup("late", `,"expires_at":"2099-01-01T00:00:00Z"`)
	early := topup("early", `,"expires_at":"2098-01-01T00:00:00Z"`)
	topup("first", `,"priority":10`)
	topup("last", `,"priority":90`)
	list().has("items.3.priority", "90")
	c.move("charge", "ada", "c1", "5").wants(200)
	list()
	c.put("/v1/customers/ada/holds/h", `{"credit_type":"main","amount":"12"}`).wants(201)
	list()
	c.move("charge", "ada", "c2", "20").wants(200)
	list()
	c.post("/v1/customers/ada/holds/h/capture", "", `{"amount":"7"}`).wants(200)
	list()
	c.post("/v1/movements/"+early+"/reversal", "", `{"amount":"2"}`).wants(201)
	a := c.get("/v1/customers/ada/grants?limit=1").wants(200)
	if next := a.at("next_cursor"); next != nil {
		c.get("/v1/customers/ada/grants?limit=1&cursor=" + next.(string)).wants(200)
	}
	c.move("charge", "ada", "c3", "14").wants(200)
	list()
	c.send(request{method: http.MethodGet, path: "/v1/customers/nobody/grants"}).refuses(404, "customer_not_found")
}
