package httpapi

import "github.com/actionpulse/actionpulse/api"

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
	return jsonAnswer(seen)
}
