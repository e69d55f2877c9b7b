package actionpulse

import (
	"context"
	"errors"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// Intake sends single requests with events, for programs that keep and batch
// events themselves. It needs a client with an ingest key. Others use a
// tracker, which fixes id and time at the moment of the fact and keeps events
// until they are stored.
type Intake struct{ link *link }

// Track sends a batch of 1 to 1000 events. It returns how many were accepted,
// how many of those were duplicates, and which were rejected; rejected ones
// are not to be sent again. The request is repeated only if each event has an
// id, since a repeat stores those without one a second time.
func (i *Intake) Track(ctx context.Context, batch api.TrackRequest) (*api.TrackResponse, error) {
	c := changes("track", http.MethodPost, "/v1/track").with(batch)
	if eachHasID(batch.Events) {
		c.kind = retry.Event
	}
	answer, r, err := exchange[api.TrackResponse](ctx, i.link, c)
	if err == nil && !answer.AccountsFor(len(batch.Events)) {
		return nil, c.unreadable(r, errUncounted)
	}
	return answer, err
}

// errUncounted is why an answer to a batch cannot be believed.
var errUncounted = errors.New("it does not account for every event of the request")

func eachHasID(items []api.TrackItem) bool {
	for _, item := range items {
		if item.EventID == nil || *item.EventID == "" {
			return false
		}
	}
	return len(items) > 0
}

// Identify links an anonymous id to a user and sets traits. It is not repeated
// by itself: each request adds an event.
func (i *Intake) Identify(ctx context.Context, request api.IdentifyRequest) error {
	return perform(ctx, i.link, changes("identify", http.MethodPost, "/v1/identify").with(request))
}

// Alias links an anonymous id to a user. It is repeated like an event with an
// id: a pair that is linked stays exactly as it is, however often and late it
// is sent, and no event is added. It is refused with forbidden to a browser
// token.
func (i *Intake) Alias(ctx context.Context, request api.AliasRequest) error {
	c := changes("alias", http.MethodPost, "/v1/alias").with(request)
	c.kind = retry.Event
	return perform(ctx, i.link, c)
}
