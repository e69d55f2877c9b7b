package webhook

import (
	"context"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/id"
)

// Deliveries returns deliveries to a project's endpoint, the latest first.
// Fault: not_found.
func (s *Service) Deliveries(ctx context.Context, projectID string, p ListParams) ([]Delivery, error) {
	if _, err := s.Get(ctx, projectID, p.EndpointID); err != nil {
		return nil, err
	}
	all, err := s.params.Store.ListDeliveries(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list webhook deliveries: %w", err)
	}
	return all, nil
}

// Resend sends a delivery that is dead or delivered once more, with the id and
// the bytes it had. Faults: not_found; conflict, when it is pending or the
// endpoint is disabled; unavailable.
func (s *Service) Resend(ctx context.Context, at Place, deliveryID string) (Delivery, error) {
	if err := s.enabled(ctx, at); err != nil {
		return Delivery{}, err
	}
	if !id.Valid(deliveryID) {
		return Delivery{}, noDelivery()
	}
	again, err := s.params.Store.Resend(ctx, at.EndpointID, deliveryID, s.now())
	if err != nil {
		return Delivery{}, fmt.Errorf("send a webhook delivery again: %w", err)
	}
	d, found, err := s.params.Store.FindDelivery(ctx, at.EndpointID, deliveryID)
	switch {
	case err != nil:
		return Delivery{}, fmt.Errorf("find a webhook delivery: %w", err)
	case !found:
		return Delivery{}, noDelivery()
	case !again:
		return Delivery{}, fault.New(api.CodeConflict, "the delivery is pending: it is tried without being asked for")
	}
	s.params.Wake()
	return d, nil
}

// Test sends a message of type webhook.test to an endpoint. Faults: not_found;
// conflict, when the endpoint is disabled; unavailable.
func (s *Service) Test(ctx context.Context, at Place) (Delivery, error) {
	if err := s.enabled(ctx, at); err != nil {
		return Delivery{}, err
	}
	now := s.now()
	ref, err := id.New(now, s.params.Random)
	if err != nil {
		return Delivery{}, err
	}
	deliveryID, err := id.New(now, s.params.Random)
	if err != nil {
		return Delivery{}, err
	}
	m, err := newMessage(ref, Test, at.ProjectID, now, api.WebhookTest{WebhookID: at.EndpointID})
	if err != nil {
		return Delivery{}, err
	}
	if err := s.params.Store.CreateMessage(ctx, m, at.EndpointID, deliveryID); err != nil {
		return Delivery{}, fmt.Errorf("make a test message: %w", err)
	}
	s.params.Wake()
	d, found, err := s.params.Store.FindDelivery(ctx, at.EndpointID, deliveryID)
	if err == nil && !found {
		err = errors.New("it is not there")
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("find the delivery of a test: %w", err)
	}
	return d, nil
}

// enabled refuses an endpoint that gets nothing.
func (s *Service) enabled(ctx context.Context, at Place) error {
	e, err := s.Get(ctx, at.ProjectID, at.EndpointID)
	if err != nil {
		return err
	}
	if e.State != Enabled {
		return fault.New(api.CodeConflict, "the endpoint is disabled: enable it first")
	}
	return nil
}

func noDelivery() error { return fault.New(api.CodeNotFound, "there is no such webhook delivery") }
