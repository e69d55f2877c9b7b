package httpapi

import (
	"fmt"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// query answers a question about the events of one project. A faulty request
// is refused for its fault whether or not the project exists: to find that
// out it is asked of project 0, which has no events.
func (s *service) query(x *exchange) (answer, error) {
	project, missing := s.project(x)
	if missing != nil {
		if fault.CodeOf(missing) != api.CodeNotFound {
			return answer{}, missing
		}
		project.Number = 0
	}
	response, err := s.Querier.Run(x.r.Context(), project.Number, x.body.data)
	switch code := fault.CodeOf(err); {
	case missing != nil && (err == nil || (code != api.CodeInvalidJSON && code != api.CodeValidationFailed)):
		return answer{}, missing
	case err != nil:
		return answer{}, err
	default:
		return jsonAnswer(response)
	}
}

// project finds the project in the path, in the caller's organization.
func (s *service) project(x *exchange) (account.Project, error) {
	return s.Projects.FindProject(x.r.Context(), x.caller.OrganizationID, x.r.PathValue("id"))
}

// jsonAnswer is a 200 with v as its body.
func jsonAnswer(v any) (answer, error) {
	body, err := marshal(v)
	if err != nil {
		return answer{}, fmt.Errorf("marshal the answer: %w", err)
	}
	return answer{status: http.StatusOK, body: body}, nil
}
