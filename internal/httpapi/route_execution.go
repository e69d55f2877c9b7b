package httpapi

import (
	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/execution"
)

// executeLimit is the most that a request to run a flow may hold.
const executeLimit = 1 << 20

// Where executions and operations are.
const (
	operationsPath = "/v1/operations"
	executionsPath = "/v1/executions"
)

// executionRoutes are those of runs of flows.
func executionRoutes() []route {
	project := access{kinds: []credential.Kind{credential.Project}}
	withKey := jsonBody(executeLimit).refusedAs(api.CodeInvalidRequest).under(execution.KeyPolicy())
	const one = executionsPath + "/{execution_id}"
	return []route{
		{"POST", operationsPath + "/execute", project, withKey, keyed, executeOperation, (*service).execute},
		{"GET", operationsPath, project, body{}, reads, listOperationsOperation, (*service).listOperations},
		{"GET", operationsPath + "/costs", project, body{}, reads, listCostsOperation, (*service).listCosts},
		{"GET", executionsPath, project, body{}, reads, listExecutionsOperation, (*service).listExecutions},
		{"GET", one, project, body{}, reads, getExecutionOperation, (*service).getExecution},
		{"GET", one + "/trace", project, body{}, reads, getTraceOperation, (*service).getTrace},
		{"GET", one + "/events", project, body{}, reads, followExecutionOperation, (*service).followExecution},
		{"POST", one + "/cancel", project, body{}, mutates, cancelExecutionOperation, (*service).cancelExecution},
	}
}
