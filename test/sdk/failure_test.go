package sdk

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// hangsUp is a server that takes requests and answers none.
func hangsUp(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // it is all the same
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// codesOfFailures: each code with which a run that has begun can fail.
func codesOfFailures(c *conversation) {
	for _, one := range []struct {
		slug, definition string
		status           int
		code             string
	}{
		{
			"refused", `{"steps":[{"id":"a","type":"model","provider":"echo","model":"echo-fail","messages":[{"role":"user","content":"x"}]}]}`,
			502, "model_error",
		},
		{"late", `{"steps":[{"id":"a","type":"wait","for":"1h"}],"limits":{"timeout":"20ms"}}`, 504, "execution_timeout"},
		{"lost", `{"steps":[{"id":"a","type":"http","method":"POST","url":"` + hangsUp(c.T) + `"}]}`, 502, "outcome_unknown"},
		{"broken", definitions["broken"], 502, "step_failed"},
	} {
		c.publishAs(one.slug, one.definition)
		body := `{"flow":"` + one.slug + `","input":{"text":"x"}}`
		c.execute(one.slug, body).refuses(one.status, one.code).has("error.details.key", `"taken"`).has("error.details.retryable", "false")
		c.execute(one.slug, body).wants(200).replayed(true).has("execution.status", `"failed"`).has("execution.error.code", `"`+one.code+`"`)
	}
}

func failedExecutions(c *conversation) {
	c.publish("shout", "broken", "priced")
	for _, key := range []string{"sync", "async"} {
		body := `{"flow":"shout","input":{},"execution_mode":"` + key + `"}`
		c.execute(key, body).refuses(422, "invalid_flow_input").has("error.details.key", `"taken"`).has("error.details.retryable", "false")
		for range 3 {
			c.execute(key, body).wants(200).replayed(true).has("execution.status", `"failed"`).has("execution.error.code", `"invalid_flow_input"`)
		}
	}
	c.execute("broken", `{"flow":"broken","input":{"text":"x"}}`).refuses(502, "step_failed").has("error.details.key", `"taken"`)
	c.execute("broken", `{"flow":"broken","input":{"text":"x"}}`).wants(200).replayed(true).has("execution.error.code", `"step_failed"`)
	c.execute("broken", `{"flow":"broken","input":{"a":1}}`).refuses(409, "idempotency_conflict").has("error.details.unit.status", `"failed"`)
	c.execute("again", `{"flow":"shout","input":{"text":"right"}}`).wants(200).replayed(false) // a new key runs
	c.move("topup", "ada", "t", "1").wants(200)
	c.execute("poor", `{"flow":"priced","input":{},"customer":"ada"}`).refuses(402, "insufficient_credits") // money is looked at first
	c.move("topup", "ada", "t2", "1").wants(200)
	c.execute("poor", `{"flow":"priced","input":{},"customer":"ada"}`).refuses(422, "invalid_flow_input")
	c.get("/v1/customers/ada").wants(200).has("balances.main.available", `"2"`)
}
