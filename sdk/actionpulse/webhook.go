package actionpulse

import (
	"context"
	"iter"
	"net/http"

	"github.com/actionpulse/actionpulse/api"
)

// Webhooks are the endpoints of yours that a project sends messages to.
type Webhooks struct{ link *link }

const (
	webhooksPath = projectPath + "/webhooks"
	webhookPath  = webhooksPath + "/{webhook_id}"
)

// List returns a page of a project's endpoints.
func (w *Webhooks) List(ctx context.Context, projectID string, p Page) (*api.List[api.Webhook], error) {
	return list[api.Webhook](ctx, w.link, reads("listWebhooks", webhooksPath, projectID).ask(p.query()))
}

// All yields every endpoint from p on.
func (w *Webhooks) All(ctx context.Context, projectID string, p Page) iter.Seq2[api.Webhook, error] {
	return all(p, func(p Page) (*api.List[api.Webhook], error) { return w.List(ctx, projectID, p) })
}

// Create makes an endpoint. Its secret is shown once.
func (w *Webhooks) Create(ctx context.Context, projectID string, n api.NewWebhook) (*api.CreatedWebhook, error) {
	return fetch[api.CreatedWebhook](ctx, w.link, changes("createWebhook", http.MethodPost, webhooksPath, projectID).with(n))
}

// Get returns an endpoint; not_found if there is none.
func (w *Webhooks) Get(ctx context.Context, projectID, webhookID string) (*api.Webhook, error) {
	return fetch[api.Webhook](ctx, w.link, reads("getWebhook", webhookPath, projectID, webhookID))
}

// Update changes an endpoint; what is absent stays.
func (w *Webhooks) Update(ctx context.Context, projectID, webhookID string, change api.WebhookChange) (*api.Webhook, error) {
	return fetch[api.Webhook](ctx, w.link, changes("updateWebhook", http.MethodPatch, webhookPath, projectID, webhookID).with(change))
}

// Delete takes an endpoint away.
func (w *Webhooks) Delete(ctx context.Context, projectID, webhookID string) error {
	return perform(ctx, w.link, changes("deleteWebhook", http.MethodDelete, webhookPath, projectID, webhookID))
}

// RotateSecret gives an endpoint another secret; the one before signs too for
// the overlap.
func (w *Webhooks) RotateSecret(ctx context.Context, projectID, webhookID string, r api.Rotation) (*api.CreatedWebhook, error) {
	c := changes("rotateWebhookSecret", http.MethodPost, webhookPath+"/rotate-secret", projectID, webhookID).with(r)
	return fetch[api.CreatedWebhook](ctx, w.link, c)
}

// Test sends an endpoint a message to try it.
func (w *Webhooks) Test(ctx context.Context, projectID, webhookID string) (*api.WebhookDelivery, error) {
	return fetch[api.WebhookDelivery](ctx, w.link, changes("testWebhook", http.MethodPost, webhookPath+"/test", projectID, webhookID))
}

// ListDeliveries says which deliveries are asked for.
type ListDeliveries struct {
	Page
	// State is pending, delivered or dead; empty means any.
	State string
}

// Deliveries returns a page of the messages to an endpoint.
func (w *Webhooks) Deliveries(ctx context.Context, projectID, webhookID string, p ListDeliveries) (*api.List[api.WebhookDelivery], error) {
	q := p.Page.query()
	setText(q, "state", p.State)
	return list[api.WebhookDelivery](ctx, w.link, reads("listWebhookDeliveries", webhookPath+"/deliveries", projectID, webhookID).ask(q))
}

// AllDeliveries yields every message from p on.
func (w *Webhooks) AllDeliveries(ctx context.Context, projectID, webhookID string, p ListDeliveries) iter.Seq2[api.WebhookDelivery, error] {
	return all(p.Page, func(page Page) (*api.List[api.WebhookDelivery], error) {
		p := p
		p.Page = page
		return w.Deliveries(ctx, projectID, webhookID, p)
	})
}

// Resend sends a message again.
func (w *Webhooks) Resend(ctx context.Context, projectID, webhookID, deliveryID string) (*api.WebhookDelivery, error) {
	path := webhookPath + "/deliveries/{delivery_id}/resend"
	return fetch[api.WebhookDelivery](ctx, w.link, changes("resendWebhookDelivery", http.MethodPost, path, projectID, webhookID, deliveryID))
}
