package httpapi

import "net/http"

// nothing is the body of an answer that has nothing to say.
var nothing = []byte("{}\n")

// identify links an anon_id to a user_id and adds one identify event: 202
// once that is on disk.
func (s *service) identify(x *exchange) (answer, error) {
	if err := s.Intake.Identify(intakeContext(x), source(x), x.body.data); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: nothing}, nil
}
