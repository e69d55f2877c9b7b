package app

import (
	"time"

	"github.com/actionpulse/actionpulse/internal/flow"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/flow/step/branch"
	"github.com/actionpulse/actionpulse/internal/flow/step/http"
	"github.com/actionpulse/actionpulse/internal/flow/step/model"
	"github.com/actionpulse/actionpulse/internal/flow/step/parallel"
	"github.com/actionpulse/actionpulse/internal/flow/step/transform"
	"github.com/actionpulse/actionpulse/internal/flow/step/wait"
	"github.com/actionpulse/actionpulse/internal/storage/flowstore"
)

// callees are what steps call.
type callees struct {
	http   http.Caller
	models model.Resolver
}

// stepTypes are all types of steps.
func stepTypes(c callees) []step.Type {
	return []step.Type{
		model.New(c.models), http.New(c.http), transform.Type{}, branch.Type{}, parallel.Type{}, wait.Type{},
	}
}

// FlowTypes are all types of steps, to compile flows with. Steps that call
// something cannot be run.
func FlowTypes() []step.Type { return stepTypes(callees{}) }

// newFlows returns the service of flows; types are those of its programs.
func newFlows(p servicesParams, types []step.Type) *flow.Service {
	return flow.NewService(flow.Params{Store: flowstore.New(p.DB), Types: types, Guard: p.Guard, Clock: time.Now})
}
