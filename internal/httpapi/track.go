package httpapi

import (
	"context"
	"net/http"

	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/record"
)

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
	}
}

// keyKinds are the kinds of credentials that send events.
var keyKinds = map[credential.Kind]record.KeyKind{
	credential.Browser: record.KeyBrowser,
	credential.Server:  record.KeyServer,
	credential.Legacy:  record.KeyLegacy,
}
