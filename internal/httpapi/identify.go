package httpapi

import (
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// nothing is the body of an answer that has nothing to say.
var nothing = []byte("{}\n")

var identifyOperation = operation{
	id: "identify", tag: tagIntake, summary: "Link an anon_id to a user_id and set traits",
	description: "Adds one identify event each time it is called. A link that is there already stays exactly as it is. " +
		"Of each trait the value with the latest ts counts.",
	request: api.IdentifyRequest{},
	errors:  codes(api.CodeQuotaExceeded, api.CodeTrialQuotaExceeded),
	replies: []reply{{status: http.StatusAccepted, doc: "It is on disk.", body: api.Nothing{}}},
}

// identify links an anon_id to a user_id and adds one identify event: 202
// once that is on disk.
func (s *service) identify(x *exchange) (answer, error) {
	if err := s.Intake.Identify(intakeContext(x), source(x), x.body.data); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: nothing}, nil
}
