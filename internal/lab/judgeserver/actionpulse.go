package judgeserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
)

// ActionPulse is a server of ours and the credentials of one project of it.
type ActionPulse struct {
	// URL is the address of the server, without a path.
	URL string
	// IngestKey is a server or legacy key, ProjectKey an apk_, CIToken an apc_
	// and AccessToken an apt_ of a member.
	IngestKey, ProjectKey, CIToken, AccessToken string
	// ProjectID is the project that all of them belong to.
	ProjectID string
	// Run names the flow that is published, which stays; letters and digits.
	Run string
}

// longKey is a length that no operation takes.
const longKey = 300

// What the trials move: each customer begins with funds, and a topup, a charge
// or a run is of the amount beside it.
const (
	fundsAmount  = "100"
	topupAmount  = "10.50"
	chargeAmount = "2.5"
	runAmount    = "2"
)

// Endpoints returns the four operations that take a key: the deploy marker, a
// topup, a charge, and the run of a flow with the model echo, which it
// publishes.
func (a ActionPulse) Endpoints(ctx context.Context) ([]Endpoint, error) {
	api := &caller{client: newClient(Options{}.withDefaults()), server: a}
	if err := api.publish(ctx); err != nil {
		return nil, fmt.Errorf("publishing the flow: %w", err)
	}
	return []Endpoint{api.marker(), api.topup(), api.charge(), api.execute()}, nil
}

// caller makes the requests around the trials.
type caller struct {
	client *client
	server ActionPulse
}

func (c *caller) flow() string { return "lab-" + c.server.Run }

func bearer(secret string) http.Header {
	return http.Header{"Authorization": {"Bearer " + secret}, "Content-Type": {"application/json"}}
}

// call makes a request with a project key that is to succeed.
func (c *caller) call(ctx context.Context, method, path, key string, body any) (answer, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	r := request{method: method, url: c.server.URL + path, header: bearer(c.server.ProjectKey), keyHeader: "Idempotency-Key"}
	if body != nil {
		r.body = content
	}
	if key != "" {
		r.keys = []string{key}
	}
	a := c.client.send(ctx, r)
	if !a.succeeded() {
		return a, errors.New(a.short())
	}
	return a, nil
}

type object map[string]any

// text returns a function that makes a body.
func text(body func(unit string) object) func(string) []byte {
	return func(unit string) []byte {
		content, _ := json.Marshal(body(unit)) // objects of texts always marshal
		return content
	}
}

func (c *caller) publish(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPut, "/v1/flows/"+c.flow(), "", object{
		"steps": []object{{
			"id": "say", "type": "model", "provider": "echo", "model": "echo-1", "on_interrupt": "retry",
			"messages": []object{{"role": "user", "content": "${input.text}"}},
		}},
		"output": "${steps.say.text}", "price": object{"per_run": runAmount},
	})
	return err
}

func (c *caller) marker() Endpoint {
	markers := c.server.URL + "/api/v1/projects/" + url.PathEscape(c.server.ProjectID) + "/release-markers"
	body := func(version string) func(string) []byte {
		return text(func(unit string) object { return object{"version": version, "environment": unit, "commit": "3b1ac44"} })
	}
	return Endpoint{
		Name: "marker", Method: http.MethodPost, URL: func(string) string { return markers + "/deploy" },
		Header: bearer(c.server.CIToken), LongKey: longKey,
		Body: body("1.0.0"), Other: body("1.0.1"), Refused: body(""),
		Identify: identifyAt("/id"),
		Count: func(ctx context.Context, unit string) (int, error) {
			return countAt(c.client.send(ctx, request{
				method: http.MethodGet, url: markers + "?environment=" + url.QueryEscape(unit), header: bearer(c.server.AccessToken),
			}), "/items")
		},
	}
}

// movement is the part that topup and charge share.
func (c *caller) movement(kind, amount, refused string) Endpoint {
	body := func(amount string) func(string) []byte {
		return text(func(unit string) object { return object{"credit_type": "main", "amount": amount, "reason": unit} })
	}
	return Endpoint{
		Name: kind, Method: http.MethodPost, Header: bearer(c.server.ProjectKey), LongKey: longKey, Exact: true,
		URL:  func(unit string) string { return c.server.URL + "/v1/customers/" + unit + "/" + kind },
		Body: body(amount), Other: body("1"), Refused: body(refused),
		Identify: identifyAt("/movement/id"),
		Count: func(ctx context.Context, unit string) (int, error) {
			return c.count(ctx, "/v1/movements?kind="+kind+"&customer="+unit)
		},
	}
}

func (c *caller) topup() Endpoint {
	e := c.movement("topup", topupAmount, "-1")
	e.Agree = func(ctx context.Context, unit string, n int) error { return c.balance(ctx, unit, "0", topupAmount, n) }
	return e
}

func (c *caller) charge() Endpoint {
	e := c.movement("charge", chargeAmount, "100000")
	e.Prepare = c.fund
	e.Agree = func(ctx context.Context, unit string, n int) error {
		return c.balance(ctx, unit, fundsAmount, "-"+chargeAmount, n)
	}
	return e
}

func (c *caller) execute() Endpoint {
	body := func(flow, suffix string) func(string) []byte {
		return text(func(unit string) object {
			return object{"flow": flow, "customer": unit, "input": object{"text": unit + suffix}, "execution_mode": "sync"}
		})
	}
	return Endpoint{
		Name: "execute", Method: http.MethodPost, Header: bearer(c.server.ProjectKey), LongKey: longKey,
		URL:  func(string) string { return c.server.URL + "/v1/operations/execute" },
		Body: body(c.flow(), ""), Other: body(c.flow(), " and more"), Refused: body(c.flow()+"-none", ""),
		Prepare: c.fund, Identify: identifyAt("/execution/id"),
		Count: func(ctx context.Context, unit string) (int, error) {
			return c.count(ctx, "/v1/executions?customer="+unit)
		},
		Agree: func(ctx context.Context, unit string, n int) error {
			return c.balance(ctx, unit, fundsAmount, "-"+runAmount, n)
		},
	}
}

func (c *caller) fund(ctx context.Context, unit string) error {
	_, err := c.call(ctx, http.MethodPost, "/v1/customers/"+unit+"/topup", unit+":fund", object{"credit_type": "main", "amount": fundsAmount})
	return err
}

func (c *caller) count(ctx context.Context, path string) (int, error) {
	return countAt(c.client.send(ctx, request{method: http.MethodGet, url: c.server.URL + path, header: bearer(c.server.ProjectKey)}), "/items")
}

// balance sees that a customer has what it began with and n times an amount,
// and that nothing is held.
func (c *caller) balance(ctx context.Context, customer, begin, amount string, n int) error {
	a, err := c.call(ctx, http.MethodGet, "/v1/customers/"+customer, "", nil)
	if err != nil && a.status == http.StatusNotFound && begin == "0" && n == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var answer struct {
		Balances map[string]struct {
			Posted string `json:"posted"`
			Held   string `json:"held"`
		} `json:"balances"`
	}
	if err := json.Unmarshal(a.body, &answer); err != nil {
		return err
	}
	has := answer.Balances["main"]
	want, _ := new(big.Rat).SetString(begin)
	each, _ := new(big.Rat).SetString(amount)
	want.Add(want, each.Mul(each, new(big.Rat).SetInt64(int64(n))))
	posted, ok := new(big.Rat).SetString(has.Posted)
	if !ok || posted.Cmp(want) != 0 || strings.Trim(has.Held, "0.") != "" {
		return fmt.Errorf("the balance is %q, with %q held, and should be %s", has.Posted, has.Held, want.FloatString(6))
	}
	return nil
}
