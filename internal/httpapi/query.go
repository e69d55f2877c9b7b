package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/actionpulse/actionpulse/internal/account"
)

// query answers a question about the events of one project. A faulty request
// is refused for its fault whether or not the project exists.
func (s *service) query(x *exchange) (answer, error) {
	number := func(context.Context) (uint32, error) {
		project, err := s.project(x)
		return project.Number, err
	}
	response, err := s.Querier.Run(x.r.Context(), number, x.body.data)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(response)
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
