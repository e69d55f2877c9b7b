package execution

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// answered journals what became of a call that has not succeeded.
func (o *stepRun) answered(err error) {
	known, described := &Call{Status: CallUnknown}, &step.Call{}
	if failure, ok := errors.AsType[*step.Error](err); ok {
		if failure.Outcome != step.Unknown {
			known.Status = CallFailed
		}
		if failure.Call != nil {
			described = failure.Call
		}
		known.Message = failure.Message
	}
	if o.call == nil && described.Kind == "" { // nothing was called
		return
	}
	if err := o.describe(known, described, nil); err != nil {
		o.run.engine.params.Log.Error("a call is not described", "execution", o.run.x.ID, "error", err)
	}
	o.run.note(nil, o.call)
}

// describe completes the row of a call with what is known of it, or makes one
// for a call that needed none before it was made, because it has not left the
// server. value is what the step is then, nil if it has none.
func (o *stepRun) describe(known *Call, c *step.Call, value map[string]any) error {
	row := Call{
		Place: o.at, ExecutionID: o.run.x.ID, Attempt: 1, DerivedKey: o.key(), StartedAt: o.started, Kind: cmp.Or(c.Kind, o.step.Type),
	}
	if o.call != nil {
		row = *o.call
	} else {
		callID, err := o.run.engine.params.newID()
		if err != nil {
			return err
		}
		row.ID = callID
	}
	secrets := o.secrets(c, value)
	row.Status, row.Message, row.FinishedAt = known.Status, blankText(known.Message, secrets), o.run.engine.params.now()
	if c.Provider != "" {
		row.Provider, row.Model = storable(c.Provider), storable(c.Model)
	}
	row.HTTPStatus, row.Usage, row.ProviderRequestID = c.Status, plausible(c.Usage), storable(c.ProviderRequestID)
	if c.Kind == "model" {
		row.Price = o.run.program.CallPrice(c.Model, row.Usage)
	}
	if o.run.program.Trace.Record {
		row.Request, row.Response = o.run.keep(c.Request, secrets), o.run.keep(c.Response, secrets)
	}
	o.call = &row
	return nil
}

// keep is what is kept of a request or response.
func (r *run) keep(text json.RawMessage, secrets []secret) json.RawMessage {
	if text == nil {
		return nil
	}
	return r.said(blank(text, secrets))
}

// secrets are the texts to be kept out of what was said in a call. What was
// answered is part of them, as if the step had it as its value.
func (o *stepRun) secrets(c *step.Call, value map[string]any) []secret {
	if len(o.run.program.Trace.Redact) == 0 {
		return nil
	}
	own := []any{value}
	if answer, err := template.Decode(c.Response); err == nil {
		own = append(own, answer)
	}
	return o.run.secrets(o.scope, map[string][]any{o.at.Step: own})
}

// storable is a text that every store keeps: valid UTF-8 without NUL.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
