package actionpulsetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// FlowFunc stands for a run of a flow: it says what comes out, and what that
// costs, "" for the price of a run as the definition has it. The context ends
// when the execution is cancelled or the test is over. An error fails the
// execution: with the code of a [*FlowError], else with step_failed.
type FlowFunc func(ctx context.Context, input json.RawMessage) (output any, price string, err error)

// FlowError is why a run of a flow fails.
type FlowError struct {
	// Code is model_error, step_failed, outcome_unknown or execution_timeout.
	Code    api.Code
	Message string
}

func (e *FlowError) Error() string { return string(e.Code) + ": " + e.Message }

// flows are those of the project, by slug.
type flows map[string]*flow

// flow is a flow and its versions, of which the first has the number 1.
type flow struct {
	slug     string
	versions []version
	// implied says that nobody has published it but [Server.SetFlow].
	implied bool
	run     FlowFunc
	check   func(input json.RawMessage) error
}

// version is a published definition.
type version struct {
	// definition is as JSON writes it with its members in order.
	definition []byte
	createdAt  time.Time
	creditType string
	// hold is what a run may cost at most, perRun what it costs at least.
	hold, perRun amount
}

// SetFlow says what comes of runs of a flow from now on. If there is none of that
// name it is there from now on, without a price, until one is published. A flow
// that is executed without SetFlow fails the test.
func (s *Server) SetFlow(slug string, run FlowFunc) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flow(slug).run = run
}

// SetInputCheck says which inputs of a flow are valid: an error fails the
// execution with invalid_flow_input before anything is run or charged. The flow
// is there from now on, as after [Server.SetFlow].
func (s *Server) SetInputCheck(slug string, check func(input json.RawMessage) error) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flow(slug).check = check
}

// PublishFlow publishes a version of a flow of which each run costs an amount of
// the credit type main, such as "2".
func (s *Server) PublishFlow(slug, perRun string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	definition := fmt.Appendf(nil, `{"steps":[{"id":"run","type":"transform","value":null}],"price":{"per_run":%q}}`, perRun)
	if _, _, err := s.publish(slug, definition); err != nil {
		s.t.Fatalf("actionpulsetest: publish %s for %q a run: %v", slug, perRun, err)
	}
}

// flow returns a flow, which is implied if it was not there.
func (s *Server) flow(slug string) *flow {
	s.t.Helper()
	if !slugs.MatchString(slug) {
		s.t.Fatalf("actionpulsetest: no flow can be called %q", slug)
	}
	if s.flows[slug] == nil {
		s.flows[slug] = &flow{slug: slug, implied: true, versions: []version{{
			definition: []byte(`{"steps":[{"id":"run","type":"transform","value":null}]}`), createdAt: s.time(),
		}}}
	}
	return s.flows[slug]
}

var (
	slugs   = regexp.MustCompile(`\A[a-z0-9][a-z0-9_-]{0,63}\z`)
	members = []string{"input", "limits", "output", "price", "steps", "trace"}
)

// publishFlow makes a definition the next version of a flow, unless it is equal
// to the latest.
func (s *Server) publishFlow(x *exchange) (reply, error) {
	if !slugs.MatchString(x.pathText("slug")) {
		return reply{}, invalidRequest("slug", "must be 1 to 64 small letters, digits, - and _")
	}
	if err := checkBody(x.body); err != nil {
		return reply{}, err
	}
	f, created, err := s.publish(x.pathText("slug"), x.body)
	if err != nil {
		return reply{}, err
	}
	out := f.wire(len(f.versions))
	out.Definition = nil
	return jsonReply(createdOr(created), api.FlowAnswer{Flow: out})
}

// publish refuses with invalid_request.
func (s *Server) publish(slug string, definition []byte) (f *flow, created bool, err error) {
	v, err := compile(definition)
	if err != nil {
		return nil, false, err
	}
	if f = s.flows[slug]; f == nil {
		f = &flow{slug: slug}
		s.flows[slug] = f
	}
	if f.implied {
		f.implied, f.versions = false, nil
	}
	if n := len(f.versions); n > 0 && bytes.Equal(f.versions[n-1].definition, v.definition) {
		return f, false, nil
	}
	v.createdAt = s.time()
	f.versions = append(f.versions, v)
	return f, true, nil
}

// priced is what is read of a definition.
type priced struct {
	Steps []struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	} `json:"steps"`
	Price struct {
		CreditType string                     `json:"credit_type"`
		PerRun     json.RawMessage            `json:"per_run"`
		PerStep    json.RawMessage            `json:"per_step"`
		Tokens     map[string]json.RawMessage `json:"tokens"`
	} `json:"price"`
	Limits struct {
		Budget json.RawMessage `json:"budget"`
	} `json:"limits"`
}

// compile checks the form of a definition, and reads its price. It refuses with
// invalid_request.
func compile(definition []byte) (v version, err error) {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(definition))
	d.UseNumber()
	if d.Decode(&all) != nil || all == nil {
		return v, issue("", "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(members, name) {
			return v, issue(shorten(name), "unknown member")
		}
	}
	if all["steps"] == nil {
		return v, issue("steps", "the member is required")
	}
	var p priced
	if json.Unmarshal(definition, &p) != nil || len(p.Steps) == 0 {
		return v, issue("steps", "must be a list of steps, and the rest of the definition what it should be")
	}
	for i, one := range p.Steps {
		if at := "steps[" + strconv.Itoa(i) + "]"; one.ID == "" {
			return v, issue(at+".id", "the member is required")
		} else if one.Type == "" {
			return v, issue(at+".type", "the member is required")
		}
	}
	if v.definition, err = json.Marshal(all); err != nil {
		return v, issue("", "cannot be written")
	}
	return v, v.readPrice(&p)
}

// readPrice reads what a run may cost.
func (v *version) readPrice(p *priced) error {
	sum := func(path string, raw json.RawMessage, times int) error {
		n, err := readAmountOr(raw, 0)
		if err != nil || n < 0 {
			return issue(path, "must be an amount, and not negative")
		}
		v.hold += n * amount(times)
		return nil
	}
	if v.creditType = p.Price.CreditType; v.creditType == "" {
		v.creditType = "main"
	}
	if err := sum("price.per_run", p.Price.PerRun, 1); err != nil {
		return err
	}
	v.perRun = v.hold
	var byID map[string]json.RawMessage
	if json.Unmarshal(p.Price.PerStep, &byID) != nil {
		if err := sum("price.per_step", p.Price.PerStep, len(p.Steps)); err != nil {
			return err
		}
	}
	for _, id := range sortedKeys(byID) {
		if err := sum("price.per_step."+id, byID[id], 1); err != nil {
			return err
		}
	}
	if len(p.Price.Tokens) > 0 && p.Limits.Budget == nil {
		return issue("limits.budget", "the member is required: token prices need a budget")
	}
	return sum("limits.budget", p.Limits.Budget, min(1, len(p.Price.Tokens)))
}

// issue is the refusal of a definition.
func issue(path, message string) error {
	field := path
	if field == "" {
		field = "definition"
	}
	return refuse(api.CodeInvalidRequest, "the definition is not valid: "+path+" "+message).
		with("field", field).with("issues", []api.FlowIssue{{Path: path, Message: message}})
}

// wire is a flow as it is sent, with one of its versions.
func (f *flow) wire(number int) api.Flow {
	v := f.versions[number-1]
	return api.Flow{
		Slug: f.slug, Version: int64(number), CreatedAt: api.TimeText(v.createdAt), LatestVersion: int64(len(f.versions)), Definition: v.definition,
	}
}

// version returns the number of a version, of the latest for 0. It refuses with
// flow_not_found.
func (f flows) version(slug string, number int64) (*flow, int, error) {
	one := f[slug]
	if one == nil || number > int64(len(one.versions)) {
		return nil, 0, refuse(api.CodeFlowNotFound, "there is no such flow or version")
	}
	if number == 0 {
		return one, len(one.versions), nil
	}
	return one, int(number), nil
}

func (s *Server) getFlow(x *exchange) (reply, error) {
	given, err := x.text("version")
	if err != nil {
		return reply{}, err
	}
	number := int64(0)
	if given != "" {
		if number, err = strconv.ParseInt(given, 10, 64); err != nil || number < 1 {
			return reply{}, invalidField("version", "must be a whole number from 1")
		}
	}
	f, n, err := s.flows.version(x.pathText("slug"), number)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, api.FlowAnswer{Flow: f.wire(n)})
}

// listFlows lists the flows by name.
func (s *Server) listFlows(x *exchange) (reply, error) {
	p, err := x.page(slugs.MatchString)
	if err != nil {
		return reply{}, err
	}
	all := slices.DeleteFunc(sortedKeys(s.flows), func(slug string) bool { return slug <= p.after })
	return listReply(p, all, func(slug string) api.Flow {
		out := s.flows[slug].wire(len(s.flows[slug].versions))
		out.Definition = nil
		return out
	}, func(slug string) string { return slug })
}
