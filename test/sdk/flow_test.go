package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/actionpulsetest"
)

var flowScenarios = []scenario{
	{"publishing", publishing},
	{"executions and their repeats", executions},
	{"executions that are refused", refusedExecutions},
	{"executions that fail", failedExecutions},
	{"codes of failures", codesOfFailures},
	{"executions that cost", pricedExecutions},
	{"executions that go on", longExecutions},
	{"lists of executions", listsOfExecutions},
}

// definitions are the flows that are published on both servers. The real one
// runs them.
var definitions = map[string]string{
	"shout": `{
		"input":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}},
		"steps":[{"id":"a","type":"transform","value":{"said":"${input.text}!"}}],"output":{"loud":"${steps.a.output.said}"}}`,
	"priced": `{
		"input":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}},
		"steps":[{"id":"a","type":"transform","value":"${input.text}"}],"output":"${steps.a.output}","price":{"per_run":"2"}}`,
	"broken":       `{"steps":[{"id":"a","type":"transform","value":"${int(input.text)}"}],"output":null}`,
	"broken-price": `{"steps":[{"id":"a","type":"transform","value":1},{"id":"b","type":"transform","value":"${int(input.text)}"}],"price":{"per_run":"2"}}`,
	"slow":         `{"steps":[{"id":"a","type":"wait","for":"1h"}],"price":{"per_run":"2"}}`,
}

// runs are what comes of them on the fake, and checks which inputs they take.
var (
	runs = map[string]actionpulsetest.FlowFunc{
		"shout": func(_ context.Context, input json.RawMessage) (any, string, error) {
			said, err := textOf(input)
			return map[string]string{"loud": said + "!"}, "", err
		},
		"priced": func(_ context.Context, input json.RawMessage) (any, string, error) {
			said, err := textOf(input)
			return said, "2", err
		},
		"broken": fails(api.CodeStepFailed), "broken-price": fails(api.CodeStepFailed),
		"refused": fails(api.CodeModelError), "late": fails(api.CodeExecutionTimeout), "lost": fails(api.CodeOutcomeUnknown),
		"slow": func(ctx context.Context, _ json.RawMessage) (any, string, error) {
			<-ctx.Done()
			return nil, "", ctx.Err()
		},
	}
	checks = map[string]func(json.RawMessage) error{"shout": hasText, "priced": hasText}
)

func fails(code api.Code) actionpulsetest.FlowFunc {
	return func(context.Context, json.RawMessage) (any, string, error) {
		return nil, "", &actionpulsetest.FlowError{Code: code, Message: "it failed"}
	}
}

func hasText(input json.RawMessage) error {
	_, err := textOf(input)
	return err
}

func textOf(input json.RawMessage) (string, error) {
	var in struct{ Text *string }
	if err := json.Unmarshal(input, &in); err != nil {
		return "", err
	}
	if in.Text == nil {
		return "", errors.New("text: the member is required")
	}
	return *in.Text, nil
}

// publish publishes flows, and tells a fake server what comes of them.
func (c *conversation) publish(slugs ...string) {
	c.Helper()
	for _, slug := range slugs {
		c.publishAs(slug, definitions[slug])
	}
}

func (c *conversation) publishAs(slug, definition string) {
	c.Helper()
	c.put("/v1/flows/"+slug, definition).wants(201).has("flow.version", "1")
	if c.fake == nil {
		return
	}
	c.fake.SetFlow(slug, runs[slug])
	if checks[slug] != nil {
		c.fake.SetInputCheck(slug, checks[slug])
	}
}

func (c *conversation) execute(key, body string) *answer {
	c.Helper()
	return c.post("/v1/operations/execute", key, body)
}

func publishing(c *conversation) {
	c.publish(sorted(definitions)...)
	c.put("/v1/flows/broken", ` {"output":null, "steps":[{"value":"${int(input.text)}","type":"transform","id":"a"}]}`).wants(200).has("flow.version", "1")
	c.put("/v1/flows/broken", `{"output":1,"steps":[{"id":"a","type":"transform","value":1}]}`).wants(201).has("flow.version", "2")
	c.put("/v1/flows/broken", definitions["broken"]).wants(201).has("flow.version", "3")
	c.get("/v1/flows/broken").wants(200).has("flow.latest_version", "3")
	c.get("/v1/flows/broken?version=2").wants(200).has("flow.definition.output", "1")
	c.get("/v1/flows/broken?version=4").refuses(404, "flow_not_found")
	c.get("/v1/flows/broken?version=0").refuses(422, "validation_failed")
	c.get("/v1/flows/nothing").refuses(404, "flow_not_found")
	c.get("/v1/flows/NOT+A+SLUG").refuses(404, "flow_not_found")
	for _, slug := range []string{"Upper", "-x", "a.b", strings.Repeat("x", 65)} {
		c.put("/v1/flows/"+slug, definitions["broken"]).refuses(422, "invalid_request").has("error.details.field", `"slug"`)
	}
	for _, body := range []string{``, `{`, `{"steps":[],"steps":[]}`} {
		c.put("/v1/flows/x", body).refuses(400, "invalid_json")
	}
	for _, body := range []string{
		`{}`, `{"steps":[{"id":"a","type":"transform","value":1}],"unknown":1}`, `{"steps":[{"id":"a","type":"transform","value":1}],"price":{"per_run":"-1"}}`,
		`{"steps":[{"id":"a","type":"transform","value":1}],"price":{"per_run":"x"}}`,
		`{"steps":[{"id":"a","type":"transform","value":1}],"price":{"tokens":{"*":{"input":"1"}}}}`,
	} {
		c.put("/v1/flows/x", body).refuses(422, "invalid_request")
	}
	c.get("/v1/flows/x").refuses(404, "flow_not_found")
	a := c.get("/v1/flows?limit=3").wants(200).has("items.0.slug", `"broken"`)
	c.get("/v1/flows?limit=3&cursor="+a.text("next_cursor")).wants(200).has("items.1.slug", `"slow"`).has("next_cursor", "null")
	c.get("/v1/flows?cursor=LQ").refuses(422, "validation_failed")
}

func executions(c *conversation) {
	c.publish("shout")
	const body = `{"flow":"shout","input":{"text":"hi"},"context":{"a":1}}`
	first := c.execute("order-42:shout", body).wants(200).replayed(false).has("execution.output.loud", `"hi!"`).has("execution.status", `"succeeded"`)
	id := first.text("execution.id")
	for range 3 {
		c.execute("order-42:shout", body).wants(200).replayed(true).has("execution.id", `"`+id+`"`)
	}
	for _, other := range []struct{ body, same string }{
		{`{"input":{"text":"hi"},"flow":"shout","context":{"a":1}}`, "true"},
		{`{"flow":"shout","input":{"text":"ho"},"context":{"a":1}}`, "null"},
		{`{"flow":"shout","input":{"text":"hi"},"context":{"a":1},"execution_mode":"async"}`, "null"},
		{`{`, "null"},
		{`{"flow":"nothing","input":{}}`, "null"},
	} {
		c.execute("order-42:shout", other.body).refuses(409, "idempotency_conflict").has("error.details.same_json", other.same).
			has("error.details.unit.kind", `"execution"`).has("error.details.unit.id", `"`+id+`"`).has("error.details.unit.status", `"succeeded"`)
	}
	c.move("topup", "ada", "order-42:shout", "1").refuses(409, "idempotency_conflict")
	c.get("/v1/executions/" + id).wants(200)
	c.get("/v1/idempotency-keys?key=never").refuses(404, "not_found")
	c.quietly(request{method: http.MethodGet, path: "/v1/idempotency-keys?key=order-42:shout"}).wants(200).has("unit.id", `"`+id+`"`).has("response_expires_at", "null")
	c.post("/v1/executions/"+id+"/cancel", "", ``).wants(200).has("execution.status", `"succeeded"`) // it has ended
	if statuses := c.atOnce(50, request{path: "/v1/operations/execute", key: "fifty", body: body}); statuses[200] != 50 {
		c.Errorf("%s: %v", c.name, statuses)
	}
	c.get("/v1/executions?idempotency_key=fifty").wants(200).has("items.1", "null")
	c.execute("async", `{"flow":"shout","input":{"text":"hi"},"execution_mode":"async"}`).wants(202).has("execution.status", `"queued"`).has("execution.started_at", "null")
	c.untilStatus("async", "succeeded")
	c.execute("async", `{"flow":"shout","input":{"text":"hi"},"execution_mode":"async"}`).wants(200).replayed(true).has("execution.status", `"succeeded"`)
}

// untilStatus waits until the execution of a key is in a state.
func (c *conversation) untilStatus(key, status string) {
	c.Helper()
	c.until("the execution is "+status, func() bool {
		a := c.quietly(request{method: http.MethodGet, path: "/v1/executions?idempotency_key=" + key}).wants(200)
		return a.text("items.0.status") == status
	})
}

// cancel ends an execution that runs. The answer need not say so yet: a busy
// server waits for the end for a second.
func (c *conversation) cancel(id string) {
	c.Helper()
	c.quietly(request{path: "/v1/executions/" + id + "/cancel"}).wants(200)
	c.until("the execution is cancelled", func() bool {
		return c.quietly(request{method: http.MethodGet, path: "/v1/executions/" + id}).wants(200).text("execution.status") == "cancelled"
	})
}

func refusedExecutions(c *conversation) {
	c.publish("shout", "priced")
	for i, body := range []string{
		`{}`, `{"flow":"shout"}`, `{"input":{}}`, `{"flow":"","input":{}}`, `{"flow":7,"input":{}}`, `{"flow":"shout","input":[]}`, `{"flow":"shout","input":null}`,
		`{"flow":"shout","input":{"text":"hi"},"context":7}`, `{"flow":"shout","input":{"text":"hi"},"execution_mode":"later"}`,
		`{"flow":"shout","input":{"text":"hi"},"version":0}`, `{"flow":"shout","input":{"text":"hi"},"version":"1"}`, `{"flow":"shout","input":{"text":"hi"},"customer":""}`,
		`{"flow":"shout","input":{"text":"hi"},"customer":"."}`, `{"flow":"shout","input":{"text":"hi"},"unknown":1}`, `{"flow":"priced","input":{"text":"hi"}}`,
		`{"flow":"` + strings.Repeat("x", 65) + `","input":{}}`, `[]`,
	} {
		c.execute(fmt.Sprintf("k%d", i), body).refuses(422, "invalid_request").has("error.details.key", `"free"`)
	}
	c.execute("k", ``).refuses(400, "invalid_json").has("error.details.key", `"free"`)
	c.execute("k", `{"flow":"nothing","input":{}}`).refuses(404, "flow_not_found").has("error.details.key", `"free"`)
	c.execute("k", `{"flow":"NOT A SLUG","input":{}}`).refuses(404, "flow_not_found")
	c.execute("k", `{"flow":"shout","input":{"text":"hi"},"version":2}`).refuses(404, "flow_not_found")
	c.execute("k", `{"flow":"shout","input":{"text":"hi"},"customer":"nobody"}`).refuses(404, "customer_not_found")
	c.execute("k", `{"flow":"priced","input":{"text":"hi"},"customer":"nobody"}`).refuses(404, "customer_not_found").has("error.details.key", `"free"`)
	c.put("/v1/customers/ada", ``).wants(201)
	c.execute("k", `{"flow":"priced","input":{"text":"hi"},"customer":"ada"}`).refuses(402, "insufficient_credits").has("error.details.balance.available", `"0"`).
		has("error.details.key", `"free"`)
	c.execute("", `{"flow":"shout","input":{}}`).refuses(400, "idempotency_key_required")
	c.get("/v1/executions").wants(200).has("items", "[]")
	c.execute("k", `{"flow":"shout","input":{"text":"hi"},"customer":"ada","version":1,"context":null,"execution_mode":"sync"}`).wants(200).replayed(false)
	c.get("/v1/executions/"+anyID).refuses(404, "not_found")
	c.get("/v1/executions/nothing").refuses(404, "not_found")
	c.post("/v1/executions/"+anyID+"/cancel", "", ``).refuses(404, "not_found")
}

func pricedExecutions(c *conversation) {
	c.publish("priced", "broken-price", "slow")
	c.move("topup", "ada", "t", "7").wants(200)
	body := `{"flow":"priced","input":{"text":"hi"},"customer":"ada"}`
	id := c.execute("p1", body).wants(200).has("execution.charged", `"2"`).text("execution.id")
	c.execute("p1", body).wants(200).replayed(true)
	c.get("/v1/customers/ada").wants(200).has("balances.main.posted", `"5"`).has("balances.main.held", `"0"`)
	c.get("/v1/movements?kind=capture").wants(200).has("items.0.execution_id", `"`+id+`"`).has("items.1", "null")
	hold := "/v1/customers/ada/holds/" + id
	c.get(hold).wants(200).has("hold.state", `"captured"`)
	c.post(hold+"/release", "", ``).refuses(409, "conflict").has("error.details.execution_id", `"`+id+`"`)
	c.post(hold+"/capture", "", ``).refuses(409, "conflict")
	c.execute("p2", `{"flow":"broken-price","input":{"text":"x"},"customer":"ada"}`).refuses(502, "step_failed")
	c.get("/v1/customers/ada").wants(200).has("balances.main.posted", `"3"`)
	c.execute("p3", `{"flow":"slow","input":{},"customer":"ada","execution_mode":"async"}`).wants(202)
	c.get("/v1/customers/ada").wants(200).has("balances.main.available", `"1"`)
	c.execute("p4", body).refuses(402, "insufficient_credits")
	c.untilStatus("p3", "running")
	running := c.quietly(request{method: http.MethodGet, path: "/v1/executions?idempotency_key=p3"}).text("items.0.id")
	c.cancel(running)
	c.get("/v1/executions/"+running).wants(200).has("execution.charged", `"2"`)
	c.get("/v1/customers/ada").wants(200).has("balances.main.posted", `"1"`).has("balances.main.held", `"0"`)
	c.execute("p3", `{"flow":"slow","input":{},"customer":"ada","execution_mode":"async"}`).wants(200).replayed(true).has("execution.status", `"cancelled"`)
}

func longExecutions(c *conversation) {
	c.publish("slow")
	c.move("topup", "ada", "t", "10").wants(200)
	const body = `{"flow":"slow","input":{},"customer":"ada"}`
	wait := func(prefer string) *answer {
		return c.send(request{path: "/v1/operations/execute", key: "long", body: body, header: http.Header{"Prefer": {prefer}}})
	}
	a := wait("wait=0").wants(202).replayed(false).has("execution.status", `"running"`)
	for _, prefer := range []string{"wait=0", `respond-async, wait="0"`, "WAIT=0; x"} {
		wait(prefer).wants(200).replayed(true).has("execution.status", `"running"`)
	}
	c.execute("long", `{"flow":"slow","input":{}}`).refuses(409, "idempotency_conflict").has("error.details.unit.status", `"running"`)
	c.cancel(a.text("execution.id"))
	c.post("/v1/executions/"+a.text("execution.id")+"/cancel", "", ``).wants(200)
	wait("wait=60").wants(200).replayed(true).has("execution.status", `"cancelled"`)
}

func listsOfExecutions(c *conversation) {
	c.publish("shout", "broken")
	c.put("/v1/customers/ada", ``).wants(201)
	for i := range 3 {
		c.execute(fmt.Sprintf("k%d", i), `{"flow":"shout","input":{"text":"hi"},"customer":"ada"}`).wants(200)
	}
	c.execute("b", `{"flow":"broken","input":{"text":"x"}}`).refuses(502, "step_failed")
	a := c.get("/v1/executions?limit=3").wants(200).has("items.0.flow", `"broken"`)
	c.get("/v1/executions?limit=3&cursor="+a.text("next_cursor")).wants(200).has("items.0.idempotency_key", `"k0"`).has("next_cursor", "null")
	c.get("/v1/executions?status=failed").wants(200).has("items.1", "null")
	c.get("/v1/executions?customer=ada&flow=shout&status=succeeded").wants(200).has("items.2.idempotency_key", `"k0"`)
	c.get("/v1/executions?idempotency_key=k1").wants(200).has("items.1", "null")
	c.get("/v1/executions?flow=nothing").wants(200).has("items", "[]")
	for _, query := range []string{"?status=gone", "?limit=0", "?cursor=bm8", "?flow=a&flow=b"} {
		c.get("/v1/executions"+query).refuses(422, "validation_failed")
	}
	a = c.get("/v1/operations?limit=3").wants(200).has("items.0.status", `"failed"`)
	c.get("/v1/operations?limit=3&cursor=" + a.text("next_cursor")).wants(200)
	c.get("/v1/operations?execution_id="+a.text("items.1.execution_id")).wants(200).has("items.1", "null")
	c.get("/v1/operations?execution_id=nothing").wants(200).has("items", "[]")
}
