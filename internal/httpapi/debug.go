package httpapi

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

var ingestDebugOperation = operation{
	id: "getIngestDebug", tag: tagQueries, summary: "Show what intake saw lately",
	description: "The latest items of each verdict and counts by key and SDK. It is kept in memory and starts empty with the process.",
	params:      []param{idParam("id", "The project.")},
	replies:     replyOK("What intake saw lately.", api.IngestDebug{}),
	errors:      codes(api.CodeNotFound),
}

// ingestDebug shows what intake saw lately of one project.
func (s *service) ingestDebug(x *exchange) (answer, error) {
	project, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	seen := s.Intake.Debug(project.Number)
	for _, list := range []*[]api.DebugItem{&seen.Accepted, &seen.Duplicate, &seen.Conflicting, &seen.Rejected} {
		if *list == nil {
			*list = []api.DebugItem{}
		}
	}
	if seen.Rates == nil {
		seen.Rates = []api.DebugRate{}
	}
	return jsonAnswer(http.StatusOK, seen)
}
