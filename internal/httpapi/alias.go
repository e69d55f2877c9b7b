package httpapi

import "net/http"

// alias links an anon_id to a user_id and adds no event: 202 once that is on
// disk.
func (s *service) alias(x *exchange) (answer, error) {
	if err := s.Intake.Alias(intakeContext(x), source(x), x.body.data); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: nothing}, nil
}
