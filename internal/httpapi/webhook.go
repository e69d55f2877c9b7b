package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/webhook"
)

// webhookLimit is the most that the body of a webhook endpoint may hold.
const webhookLimit = 16 << 10

// webhookRoutes are those of webhook endpoints and their deliveries.
func webhookRoutes() []route {
	viewer := access{kinds: []credential.Kind{credential.Access}, role: roleViewer}
	admin := access{kinds: []credential.Kind{credential.Access}, role: roleAdmin}
	const all = "/api/v1/projects/{id}/webhooks"
	const one = all + "/{webhook_id}"
	return []route{
		{"POST", all, admin, jsonBody(webhookLimit), mutates, createWebhookOperation, (*service).createWebhook},
		{"GET", all, viewer, body{}, reads, listWebhooksOperation, (*service).listWebhooks},
		{"GET", one, viewer, body{}, reads, getWebhookOperation, (*service).getWebhook},
		{"PATCH", one, admin, jsonBody(webhookLimit), mutates, updateWebhookOperation, (*service).updateWebhook},
		{"DELETE", one, admin, body{}, mutates, deleteWebhookOperation, (*service).deleteWebhook},
		{"POST", one + "/rotate-secret", admin, jsonBody(accountLimit), mutates, rotateWebhookOperation, (*service).rotateWebhook},
		{"POST", one + "/test", admin, body{}, mutates, testWebhookOperation, (*service).testWebhook},
		{"GET", one + "/deliveries", viewer, body{}, reads, listDeliveriesOperation, (*service).listDeliveries},
		{"POST", one + "/deliveries/{delivery_id}/resend", admin, body{}, mutates, resendDeliveryOperation, (*service).resendDelivery},
	}
}

// webhookParams are the parameters of the methods of one endpoint.
func webhookParams(others ...param) []param {
	return append([]param{idParam("id", "The project."), idParam("webhook_id", "The webhook endpoint.")}, others...)
}

var createWebhookOperation = operation{
	id: "createWebhook", tag: tagWebhooks, summary: "Make a webhook endpoint",
	description: "It is told of everything that is asked for after this answer. The secret is shown once. A repeat makes a second endpoint.",
	params:      []param{idParam("id", "The project.")},
	request:     api.NewWebhook{},
	replies:     replyCreated("The endpoint with its secret.", api.CreatedWebhook{}),
	errors:      codes(api.CodeConflict),
}

func (s *service) createWebhook(x *exchange) (answer, error) {
	in, err := decode[api.NewWebhook](x)
	if err != nil {
		return answer{}, err
	}
	c := webhook.Content{URL: in.URL, Description: textOf(in.Description), Wishes: webhook.Wishes{Types: typesOf(in.Events)}}
	if c.LowBalance, err = thresholdsOf(in.LowBalance); err != nil {
		return answer{}, err
	}
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	e, secret, err := s.Webhooks.Create(x.r.Context(), at, c)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, api.CreatedWebhook{Webhook: webhookOf(&e), Secret: secret})
}

var listWebhooksOperation = operation{
	id: "listWebhooks", tag: tagWebhooks, summary: "List webhook endpoints",
	params:  pageParams(idParam("id", "The project.")),
	replies: replyOK("A page of endpoints.", api.List[api.Webhook]{}),
}

func (s *service) listWebhooks(x *exchange) (answer, error) {
	part, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	p, err := s.project(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.Webhooks.List(x.r.Context(), p.ID, part.after, part.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, part.limit, webhookOf, func(e *webhook.Endpoint) string { return e.ID })
}

var getWebhookOperation = operation{
	id: "getWebhook", tag: tagWebhooks, summary: "Get a webhook endpoint",
	params:  webhookParams(),
	replies: replyOK("The endpoint.", api.Webhook{}),
}

func (s *service) getWebhook(x *exchange) (answer, error) {
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	e, err := s.Webhooks.Get(x.r.Context(), at.ProjectID, at.EndpointID)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, webhookOf(&e))
}

var updateWebhookOperation = operation{
	id: "updateWebhook", tag: tagWebhooks, summary: "Change, disable or enable a webhook endpoint",
	description: "What is absent stays as it is. Without balance.low among the events there are no thresholds.",
	params:      webhookParams(),
	request:     api.WebhookChange{},
	replies:     replyOK("The endpoint.", api.Webhook{}),
}

func (s *service) updateWebhook(x *exchange) (answer, error) {
	in, err := decode[api.WebhookChange](x)
	if err != nil {
		return answer{}, err
	}
	c := webhook.Edit{URL: in.URL, Description: in.Description, Types: typesOf(in.Events), Enabled: in.Enabled}
	if c.LowBalance, err = thresholdsOf(in.LowBalance); err != nil {
		return answer{}, err
	}
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	e, err := s.Webhooks.Update(x.r.Context(), at, c)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, webhookOf(&e))
}

var deleteWebhookOperation = operation{
	id: "deleteWebhook", tag: tagWebhooks, summary: "Delete a webhook endpoint",
	description: "Its deliveries go with it, those that wait too.",
	params:      webhookParams(),
	replies:     replyNothing("It is deleted."),
}

func (s *service) deleteWebhook(x *exchange) (answer, error) {
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	return changed(s.Webhooks.Delete(x.r.Context(), at))
}

var rotateWebhookOperation = operation{
	id: "rotateWebhookSecret", tag: tagWebhooks, summary: "Replace the secret of a webhook endpoint",
	description: "Until the overlap is over messages carry two signatures, one by each secret. The new secret is shown once.",
	params:      webhookParams(),
	request:     api.Rotation{},
	replies:     replyOK("The endpoint with its new secret.", api.CreatedWebhook{}),
}

func (s *service) rotateWebhook(x *exchange) (answer, error) {
	in, err := decode[api.Rotation](x)
	if err != nil {
		return answer{}, err
	}
	overlap := webhook.DefaultOverlap
	if in.OverlapSeconds != nil {
		overlap = time.Duration(*in.OverlapSeconds) * time.Second
	}
	at, err := s.webhookPlace(x)
	if err != nil {
		return answer{}, err
	}
	e, secret, err := s.Webhooks.RotateSecret(x.r.Context(), at, overlap)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, api.CreatedWebhook{Webhook: webhookOf(&e), Secret: secret})
}

// webhookPlace finds the project in the path, and names the endpoint there.
func (s *service) webhookPlace(x *exchange) (webhook.Place, error) {
	p, err := s.project(x)
	return webhook.Place{
		Actor: s.actor(x), OrganizationID: p.OrganizationID, ProjectID: p.ID, EndpointID: x.r.PathValue("webhook_id"),
	}, err
}

// typesOf are names of types; nil stays nil.
func typesOf(names []string) []webhook.Type {
	if names == nil {
		return nil
	}
	types := make([]webhook.Type, len(names))
	for i, name := range names {
		types[i] = webhook.Type(name)
	}
	return types
}

// thresholdsOf reads amounts; nil stays nil.
func thresholdsOf(in []api.WebhookThreshold) ([]webhook.Threshold, error) {
	if in == nil {
		return nil, nil
	}
	all := make([]webhook.Threshold, len(in))
	for i, t := range in {
		below, err := credit.ParseAmount(t.Below)
		if err != nil {
			return nil, fault.Field("low_balance", "below: %s", credit.ErrAmount)
		}
		all[i] = webhook.Threshold{CreditType: t.CreditType, Below: below}
	}
	return all, nil
}

// webhookOf is an endpoint as it is sent.
func webhookOf(e *webhook.Endpoint) api.Webhook {
	out := api.Webhook{
		ID: e.ID, ProjectID: e.ProjectID, URL: e.URL, Description: e.Description, Enabled: e.State == webhook.Enabled,
		Events: make([]string, len(e.Types)), LowBalance: make([]api.WebhookThreshold, len(e.LowBalance)),
		DisabledReason: api.OptionalText(string(e.Reason)), DisabledAt: api.OptionalTime(e.EndedAt),
		FailingSince: api.OptionalTime(e.FailingSince), OldSecretUntil: api.OptionalTime(e.Secrets.OldUntil), CreatedAt: api.TimeText(e.CreatedAt),
	}
	for i, t := range e.Types {
		out.Events[i] = string(t)
	}
	for i, t := range e.LowBalance {
		out.LowBalance[i] = api.WebhookThreshold{CreditType: t.CreditType, Below: t.Below.String()}
	}
	return out
}

// deliveryOf is a delivery as it is sent.
func deliveryOf(d *webhook.Delivery) api.WebhookDelivery {
	out := api.WebhookDelivery{
		ID: d.ID, MessageID: d.Message.ID, Event: string(d.Message.Type), State: string(d.State), Attempts: d.Attempts,
		NextAttemptAt: api.OptionalTime(d.NextAttemptAt), LastAttemptAt: api.OptionalTime(d.LastAttemptAt),
		LastError: api.OptionalText(d.LastError), Payload: json.RawMessage(d.Message.Body),
		CreatedAt: api.TimeText(d.CreatedAt), FinishedAt: api.OptionalTime(d.FinishedAt),
	}
	if d.LastStatus != 0 {
		out.LastStatus = &d.LastStatus
	}
	return out
}
