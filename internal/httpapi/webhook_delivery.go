package httpapi

import (
	"net/http"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

var testWebhookOperation = operation{
	id: "testWebhook", tag: tagWebhooks, summary: "Send a test event to a webhook endpoint",
	description: "An event of type webhook.test, which is retried like any other. A repeat sends another one.",
	params:      webhookParams(),
	replies:     []reply{{status: http.StatusAccepted, doc: "It is on its way.", body: api.WebhookDelivery{}}},
	errors:      codes(api.CodeConflict),
}

func (s *service) testWebhook(x *exchange) (answer, error) {
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	d, err := s.Webhooks.Test(x.r.Context(), at)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, deliveryOf(&d))
}

var listDeliveriesOperation = operation{
	id: "listWebhookDeliveries", tag: tagWebhooks, summary: "List what was sent to a webhook endpoint, latest first",
	description: "What is finished is kept for 30 days.",
	params: pageParams(webhookParams(
		textParam("state", "Only those that are pending, delivered or dead."),
	)...),
	replies: replyOK("A page of deliveries.", api.List[api.WebhookDelivery]{}),
}

func (s *service) listDeliveries(x *exchange) (answer, error) {
	part, err := x.page()
	if err != nil {
		return answer{}, err
	}
	before, err := part.number()
	if err != nil {
		return answer{}, err
	}
	state, err := x.text("state")
	if err != nil {
		return answer{}, err
	}
	switch webhook.DeliveryState(state) {
	case "", webhook.Pending, webhook.Delivered, webhook.Dead:
	default:
		return answer{}, fault.Field("state", "state must be pending, delivered or dead")
	}
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Webhooks.Deliveries(x.r.Context(), at.ProjectID, webhook.ListParams{
		EndpointID: at.EndpointID, State: webhook.DeliveryState(state), Before: before, Limit: part.limit + 1,
	})
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, part.limit, deliveryOf, func(d *webhook.Delivery) string {
		return strconv.FormatInt(d.Number, 10)
	})
}

var resendDeliveryOperation = operation{
	id: "resendWebhookDelivery", tag: tagWebhooks, summary: "Send a dead or delivered event again",
	description: "With the webhook-id and the bytes that it had, and all its attempts anew.",
	params:      webhookParams(idParam("delivery_id", "The delivery.")),
	replies:     []reply{{status: http.StatusAccepted, doc: "It is on its way.", body: api.WebhookDelivery{}}},
	errors:      codes(api.CodeConflict),
}

func (s *service) resendDelivery(x *exchange) (answer, error) {
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	d, err := s.Webhooks.Resend(x.r.Context(), at, x.r.PathValue("delivery_id"))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, deliveryOf(&d))
}
