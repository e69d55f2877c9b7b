package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

var queryOperation = operation{
	id: "query", tag: tagQueries, summary: "Ask a question about a project's events",
	description: "The answer holds every event acknowledged before stored_through. It is a read, although it is a POST.",
	params:      []param{idParam("id", "The project.")},
	request: alternatives{
		api.TrendQuery{}, api.BreakdownQuery{}, api.FunnelQuery{}, api.RetentionQuery{}, api.EventsQuery{},
	},
	replies: replyOK("The answer to a question of the same type.", alternatives{
		api.TrendAnswer{}, api.BreakdownAnswer{}, api.FunnelAnswer{}, api.RetentionAnswer{}, api.EventsAnswer{},
	}),
	errors: codes(api.CodeNotFound, api.CodeQueryTimeout),
}

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
	return jsonAnswer(http.StatusOK, response)
}

// jsonAnswer is an answer with v as its body.
func jsonAnswer(status int, v any) (answer, error) {
	body, err := marshal(v)
	if err != nil {
		return answer{}, fmt.Errorf("marshal the answer: %w", err)
	}
	return answer{status: status, body: body}, nil
}
