package httpapi

import (
	"errors"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// readKey reads the Idempotency-Key of a keyed route, before anything of the
// body is read. Nothing has been looked up by then, so what the key names is
// not said.
func (s *service) readKey(x *exchange, policy *idempotency.Policy) error {
	key, refused := policy.ParseKey(x.r.Header)
	if refused != nil {
		return keyFault(refused)
	}
	x.key = key
	return nil
}

// free says that the key was found free: from here on a refusal leaves it so.
func (x *exchange) free() { x.keyState = api.KeyFree }

// settle notes what an error of keyed work says about the key, and turns a
// refusal by the key layer into its fault.
func (x *exchange) settle(err error) error {
	if refused, ok := errors.AsType[*idempotency.Error](err); ok {
		x.keyState = api.KeyTaken
		return keyFault(refused)
	}
	if fault.MayBeApplied(err) {
		x.keyState = ""
	}
	return err
}

// keyFault is the fault that stands for a refusal by the key layer.
func keyFault(e *idempotency.Error) error {
	f := fault.New(api.Code(e.Refusal.Code), "%s", e.Refusal.Message).
		WithStatus(e.Refusal.Status).With("header", idempotency.Header)
	if e.Problem == idempotency.Mismatch {
		f = f.With("differs", e.Differs)
		if e.SameJSON {
			f = f.With("same_json", true)
		}
		if unit := e.Record.Resource; unit != (idempotency.Resource{}) {
			f = f.With("unit", api.Unit{Kind: unit.Kind, ID: unit.ID})
		}
	}
	return f.After(e.RetryAfter)
}
