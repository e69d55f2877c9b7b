package httpapi

import (
	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
)

const (
	// flowLimit is the most that a definition may hold.
	flowLimit = 256 << 10
	// pinLimit is the most that a pin may hold.
	pinLimit = 4 << 10
)

// Where flows and the schema of their definitions are.
const (
	flowsPath      = "/v1/flows"
	flowSchemaPath = "/api/flow.schema.json"
)

// flowRoutes are those of flows.
func flowRoutes() []route {
	project := access{kinds: []credential.Kind{credential.Project}}
	definition := jsonBody(flowLimit).orYAML().refusedAs(api.CodeInvalidRequest)
	pin := jsonBody(pinLimit).refusedAs(api.CodeInvalidRequest)
	const one = flowsPath + "/{slug}"
	return []route{
		{"GET", flowsPath, project, body{}, reads, listFlowsOperation, (*service).listFlows},
		{"GET", one, project, body{}, reads, getFlowOperation, (*service).getFlow},
		{"PUT", one, project, definition, mutates, publishFlowOperation, (*service).publishFlow},
		{"GET", one + "/versions", project, body{}, reads, listFlowVersionsOperation, (*service).listFlowVersions},
		{"GET", one + "/diff", project, body{}, reads, diffFlowOperation, (*service).diffFlow},
		{"PUT", one + "/pin", project, pin, mutates, pinFlowOperation, (*service).pinFlow},
		{"DELETE", one + "/pin", project, body{}, mutates, unpinFlowOperation, (*service).unpinFlow},
		{"POST", one + "/archive", project, body{}, mutates, archiveFlowOperation, (*service).archiveFlow},
		{"POST", one + "/unarchive", project, body{}, mutates, unarchiveFlowOperation, (*service).unarchiveFlow},

		{"GET", flowSchemaPath, access{open: true}, body{}, reads, flowSchemaOperation, (*service).flowSchema},
	}
}
