package actionpulsetest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
)

// How long a repeat waits for the end of a synchronous execution.
const (
	defaultWait = 30 * time.Second
	maxWait     = 60 * time.Second
)

// execute runs a flow once for each key. The execution takes the key, whatever
// becomes of it.
func (s *Server) execute(x *exchange) (reply, error) {
	s.ledger.settle(s.time())
	wait := preferredWait(x.r.Header)
	r := s.asked(x, &executePolicy)
	result, err := s.judge(x, r)
	if err != nil {
		return reply{}, err
	}
	if result != nil {
		e := s.runsOf.byID[result.Record.Resource.ID]
		if !e.async {
			s.await(x, e, min(wait.or(defaultWait), maxWait))
		}
		return x.shown(e, http.StatusOK)
	}
	e, err := s.newExecution(x)
	if err != nil {
		return reply{}, err
	}
	s.take(r, idempotency.Resource{Kind: "execution", ID: e.wire.ID}, nil)
	x.fate = api.KeyTaken
	s.begin(e)
	if !e.async {
		s.await(x, e, wait.or(0))
	}
	switch e.wire.Status {
	case statusSucceeded, statusCancelled:
		return x.shown(e, http.StatusOK)
	case statusFailed:
		return reply{}, refuse(api.Code(e.wire.Error.Code), e.wire.Error.Message).with("execution_id", e.wire.ID)
	default:
		return x.shown(e, http.StatusAccepted)
	}
}

// shown answers with an execution. One that has not ended may be asked for again.
func (x *exchange) shown(e *execution, status int) (reply, error) {
	if !e.ended() {
		x.w.Header().Set("Retry-After", "1")
	}
	return jsonReply(status, api.ExecutionAnswer{Execution: e.wire})
}

// patience is how long a request is to wait; below zero if it does not say.
type patience time.Duration

func (p patience) or(absent time.Duration) time.Duration {
	if p < 0 {
		return absent
	}
	return max(time.Duration(p), 1) // 0 stands for ever
}

// preferredWait reads Prefer: wait=N.
func preferredWait(h http.Header) patience {
	for _, line := range h.Values("Prefer") {
		for one := range strings.SplitSeq(line, ",") {
			one, _, _ = strings.Cut(one, ";")
			name, value, _ := strings.Cut(one, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err != nil {
				return -1
			}
			return patience(min(time.Duration(seconds)*time.Second, maxWait))
		}
	}
	return -1
}

// await waits until an execution has ended, at most for d; 0 is for ever. Others
// are served meanwhile: s.mu is given back, and held again at the end.
func (s *Server) await(x *exchange, e *execution, d time.Duration) {
	if e.ended() {
		return
	}
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-e.done:
	case <-over:
	case <-x.r.Context().Done():
	case <-s.over:
	}
}

// newExecution reads a request whose key is free, and makes the execution with
// its hold. It refuses with invalid_json, invalid_request, flow_not_found,
// customer_not_found and insufficient_credits.
func (s *Server) newExecution(x *exchange) (*execution, error) {
	in, err := decode[api.ExecuteRequest](x)
	if err != nil {
		return nil, err
	}
	if in.Customer != nil && *in.Customer == "" {
		return nil, invalidRequest("customer", "must not be empty")
	}
	number := int64(0)
	if in.Version != nil {
		number = *in.Version
	}
	f, n, err := s.flows.version(in.Flow, number)
	if err != nil {
		return nil, err
	}
	v := f.versions[n-1]
	if err := checkPayer(in.Customer, v.hold); err != nil {
		return nil, err
	}
	e := &execution{
		flow: f, price: v.perRun, async: text0(in.ExecutionMode) == "async", done: make(chan struct{}),
		wire: api.Execution{
			ID: newID(), Flow: f.slug, Version: int64(n), Customer: in.Customer, Status: statusQueued, Output: json.RawMessage("null"),
			Charged: "0", Unbilled: "0", IdempotencyKey: x.key, CreatedAt: api.TimeText(s.time()),
		},
	}
	if e.input, err = json.Marshal(in.Input); err != nil {
		return nil, err
	}
	if f.check != nil {
		e.invalid = f.check(e.input)
	}
	if err := s.holdFor(e, v); err != nil {
		return nil, err
	}
	s.runsOf.add(e)
	return e, nil
}

// checkPayer refuses with invalid_request.
func checkPayer(customer *string, hold amount) error {
	if customer == nil {
		if hold > 0 {
			return invalidRequest("customer", "must be there: the flow has a price")
		}
		return nil
	}
	return validateCustomer(*customer)
}

// holdFor sets aside what an execution may cost, unless it cannot be run. It
// refuses with customer_not_found and insufficient_credits.
func (s *Server) holdFor(e *execution, v version) error {
	if e.wire.Customer == nil {
		return nil
	}
	c := s.ledger.find(*e.wire.Customer)
	if c == nil {
		return errNoCustomer
	}
	if v.hold == 0 {
		return nil
	}
	h := &hold{amount: v.hold, account: s.ledger.account(c, v.creditType), execution: e.wire.ID, wire: api.Hold{ID: e.wire.ID}}
	err := h.account.canTake(h.amount)
	if err == nil && e.invalid == nil {
		h.pins, err = h.account.place(h.amount)
	}
	if err != nil {
		return h.account.refusal(err)
	}
	if e.invalid == nil {
		e.hold = h
		s.addHold(c, h)
	}
	return nil
}

// begin has an execution run; one whose input is not valid has ended.
func (s *Server) begin(e *execution) {
	if e.invalid != nil {
		s.fail(e, api.CodeInvalidFlowInput, e.invalid.Error())
		return
	}
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	if !e.async {
		s.start(e)
	}
	s.runs.Go(func() {
		defer e.stop()
		s.mu.Lock()
		run := e.flow.run
		if e.ended() {
			s.mu.Unlock()
			return
		}
		if e.wire.StartedAt == nil {
			s.start(e)
		}
		s.mu.Unlock()
		if run == nil {
			run = s.unset(e.wire.Flow)
		}
		output, price, err := run(ctx, e.input)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end(e, output, price, err)
	})
}

// unset is the run of a flow of which the test has not said what it does.
func (s *Server) unset(slug string) FlowFunc {
	return func(context.Context, json.RawMessage) (any, string, error) {
		s.t.Errorf("actionpulsetest: the flow %s was executed, and SetFlow has not said what comes of it", slug)
		return nil, "", &FlowError{api.CodeStepFailed, "SetFlow has not said what comes of this flow"}
	}
}
