package httpapi

import (
	"context"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/record"
)

var trackOperation = operation{
	id: "track", tag: tagIntake, summary: "Send events",
	description: "Takes a batch of 1 to 1000 events. A 202 comes once every accepted event is on disk. " +
		"An item at fault is listed in rejected and spoils neither its neighbours nor the request. " +
		"An event with an event_id that was accepted within the window is counted as a duplicate and not stored again.",
	request: api.TrackRequest{},
	errors:  codes(api.CodeQuotaExceeded, api.CodeTrialQuotaExceeded),
	replies: []reply{{status: http.StatusAccepted, doc: "Every accepted event is on disk.", body: api.TrackResponse{}}},
}

// track takes a batch of events in: 202 once every accepted item is on disk.
func (s *service) track(x *exchange) (answer, error) {
	response, err := s.Intake.Track(intakeContext(x), source(x), x.body.data)
	if err != nil {
		return answer{}, err
	}
	x.scratch = appendTrackResponse(x.scratch, &response)
	return answer{status: http.StatusAccepted, body: x.scratch}, nil
}

// intakeContext is not cancelled when the client leaves: what has been handed
// over is decided and written with others, and the body's buffer is in use
// until that is done.
func intakeContext(x *exchange) context.Context {
	return context.WithoutCancel(x.r.Context())
}

// source says where items come from.
func source(x *exchange) intake.Source {
	return intake.Source{
		Project:   x.caller.Project,
		KeyKind:   keyKinds[x.caller.Kind],
		Key:       x.caller.Number,
		UserAgent: x.r.UserAgent(),

		Organization: x.caller.OrganizationID,
		Plan:         x.caller.Plan,
	}
}

// keyKinds are the kinds of credentials that send events.
var keyKinds = map[credential.Kind]record.KeyKind{
	credential.Browser: record.KeyBrowser,
	credential.Server:  record.KeyServer,
	credential.Legacy:  record.KeyLegacy,
}
