package webhook

import (
	"context"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
)

// Store keeps endpoints and their deliveries.
type Store interface {
	// CreateEndpoint stores an endpoint and the entry about it, unless the
	// project has limit endpoints: then it returns false.
	CreateEndpoint(ctx context.Context, e Endpoint, limit int, entry auditlog.Entry) (bool, error)
	// FindEndpoint returns a project's endpoint and whether there is one that
	// is not deleted.
	FindEndpoint(ctx context.Context, projectID, endpointID string) (Endpoint, bool, error)
	// ListEndpoints returns at most limit endpoints of a project with ids
	// above after that are not deleted, in order of id.
	ListEndpoints(ctx context.Context, projectID, after string, limit int) ([]Endpoint, error)
	// UpdateEndpoint lets change alter an endpoint that nobody else changes
	// meanwhile, and stores it with the entry. It reports whether there is
	// one, and returns what change returns.
	UpdateEndpoint(ctx context.Context, p UpdateParams) (Endpoint, bool, error)

	// FindDelivery returns a delivery of an endpoint and whether there is one.
	FindDelivery(ctx context.Context, endpointID, deliveryID string) (Delivery, bool, error)
	// ListDeliveries returns deliveries, the latest first.
	ListDeliveries(ctx context.Context, p ListParams) ([]Delivery, error)
	// Resend makes a finished delivery pending again, due at once, and reports
	// whether there is one that was finished.
	Resend(ctx context.Context, endpointID, deliveryID string, at time.Time) (bool, error)
	// CreateMessage stores a message with a delivery of it to an endpoint, due
	// at once.
	CreateMessage(ctx context.Context, m Message, endpointID, deliveryID string) error
}

// UpdateParams is a change to an endpoint.
type UpdateParams struct {
	ProjectID, EndpointID string
	Change                func(*Endpoint) error
	Entry                 auditlog.Entry
}

// ListParams says which deliveries to list.
type ListParams struct {
	EndpointID string
	// State is empty for all.
	State DeliveryState
	// Before is the number of the last delivery of the page before; 0 for the
	// first page.
	Before int64
	Limit  int
}

// Queue is what workers take deliveries from.
type Queue interface {
	// DueEndpoints are the ids of the enabled endpoints that have a delivery
	// to be tried now, in order.
	DueEndpoints(ctx context.Context, now time.Time) ([]string, error)
	// Claim claims due deliveries, the longest due first, and begins an
	// attempt at each. What others are claiming is passed over.
	Claim(ctx context.Context, p ClaimParams) ([]Claimed, error)
	// Record stores what came of attempts whose claims are still the latest,
	// and what follows for their endpoints. The rest is ignored.
	Record(ctx context.Context, results []Result) error
	// Sweep deletes at most limit rows of each kind that are no longer needed,
	// and says how many.
	Sweep(ctx context.Context, p SweepParams) (int, error)
}

// ClaimParams says what to claim.
type ClaimParams struct {
	// Limits are how many of each endpoint.
	Limits []ClaimLimit
	Now    time.Time
	// Until is when the claims end unless something came of them.
	Until time.Time
}

// ClaimLimit is how many deliveries of an endpoint may be claimed.
type ClaimLimit struct {
	EndpointID string
	Limit      int
}

// SweepParams says what is no longer needed.
type SweepParams struct {
	// Before is when what is deleted was finished at the latest.
	Before time.Time
	Limit  int
}
