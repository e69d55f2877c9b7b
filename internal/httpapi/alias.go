package httpapi

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

var aliasOperation = operation{
	id: "alias", tag: tagIntake, summary: "Link an anon_id to a user_id",
	description: "Adds no event. A link that is there already stays exactly as it is.",
	request:     api.AliasRequest{},
	replies:     []reply{{status: http.StatusAccepted, doc: "It is on disk.", body: api.Nothing{}}},
}

// alias links an anon_id to a user_id and adds no event: 202 once that is on
// disk.
func (s *service) alias(x *exchange) (answer, error) {
	if err := s.Intake.Alias(intakeContext(x), source(x), x.body.data); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: nothing}, nil
}
