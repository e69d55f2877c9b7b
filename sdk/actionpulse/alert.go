package actionpulse

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// Alerts watch the metrics of a project, and are told by webhooks.
type Alerts struct{ link *link }

const (
	alertsPath = projectPath + "/alerts"
	alertPath  = alertsPath + "/{alert_id}"
)

// List returns a page of a project's alerts.
func (a *Alerts) List(ctx context.Context, projectID string, p Page) (*api.List[api.Alert], error) {
	return list[api.Alert](ctx, a.link, reads("listAlerts", alertsPath, projectID).ask(p.query()))
}

// All yields every alert from p on.
func (a *Alerts) All(ctx context.Context, projectID string, p Page) iter.Seq2[api.Alert, error] {
	return all(p, func(p Page) (*api.List[api.Alert], error) { return a.List(ctx, projectID, p) })
}

// Create makes an alert. A repeat makes a second one.
func (a *Alerts) Create(ctx context.Context, projectID string, n api.NewAlert) (*api.Alert, error) {
	return fetch[api.Alert](ctx, a.link, changes("createAlert", http.MethodPost, alertsPath, projectID).with(n))
}

// Preview judges the latest periods as an alert would have, the latest first;
// 0 periods stands for the server's default.
func (a *Alerts) Preview(ctx context.Context, projectID string, n api.NewAlert, periods int) (*api.AlertPreview, error) {
	q := url.Values{}
	if periods > 0 {
		q.Set("periods", strconv.Itoa(periods))
	}
	c := changes("previewAlert", http.MethodPost, alertsPath+"/preview", projectID).ask(q).with(n)
	c.kind = retry.Read
	return fetch[api.AlertPreview](ctx, a.link, c)
}

// Get returns an alert; not_found if there is none.
func (a *Alerts) Get(ctx context.Context, projectID, alertID string) (*api.Alert, error) {
	return fetch[api.Alert](ctx, a.link, reads("getAlert", alertPath, projectID, alertID))
}

// Update changes an alert; what is absent stays.
func (a *Alerts) Update(ctx context.Context, projectID, alertID string, change api.AlertChange) (*api.Alert, error) {
	return fetch[api.Alert](ctx, a.link, changes("updateAlert", http.MethodPatch, alertPath, projectID, alertID).with(change))
}

// Delete takes an alert away, with its history.
func (a *Alerts) Delete(ctx context.Context, projectID, alertID string) error {
	return perform(ctx, a.link, changes("deleteAlert", http.MethodDelete, alertPath, projectID, alertID))
}

// Mute has nothing sent about an alert, until a time or for ever.
func (a *Alerts) Mute(ctx context.Context, projectID, alertID string, m api.AlertMute) (*api.Alert, error) {
	return fetch[api.Alert](ctx, a.link, changes("muteAlert", http.MethodPost, alertPath+"/mute", projectID, alertID).with(m))
}

// Unmute ends the mute of an alert.
func (a *Alerts) Unmute(ctx context.Context, projectID, alertID string) (*api.Alert, error) {
	return fetch[api.Alert](ctx, a.link, changes("unmuteAlert", http.MethodPost, alertPath+"/unmute", projectID, alertID))
}

// Resolve ends the firing of an alert.
func (a *Alerts) Resolve(ctx context.Context, projectID, alertID string) (*api.Alert, error) {
	return fetch[api.Alert](ctx, a.link, changes("resolveAlert", http.MethodPost, alertPath+"/resolve", projectID, alertID))
}

// History returns a page of what has become of an alert, latest first.
func (a *Alerts) History(ctx context.Context, projectID, alertID string, p Page) (*api.List[api.AlertEntry], error) {
	return list[api.AlertEntry](ctx, a.link, reads("listAlertHistory", alertPath+"/history", projectID, alertID).ask(p.query()))
}

// AllHistory yields everything that has become of an alert from p on.
func (a *Alerts) AllHistory(ctx context.Context, projectID, alertID string, p Page) iter.Seq2[api.AlertEntry, error] {
	return all(p, func(p Page) (*api.List[api.AlertEntry], error) { return a.History(ctx, projectID, alertID, p) })
}
