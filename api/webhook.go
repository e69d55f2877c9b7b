package api

import "encoding/json"

// NewWebhook is the body that makes a webhook endpoint.
type NewWebhook struct {
	URL         string             `json:"url"                   doc:"Where to POST to, http or https, without user and fragment."                                     maxLength:"2000" minLength:"1"`
	Description *string            `json:"description,omitempty" maxLength:"500"`
	Events      []string           `json:"events"                doc:"What to send."                                                                                   enum:"movement.created,balance.low,alert.fired,alert.resolved" maxItems:"10" minItems:"1"`
	LowBalance  []WebhookThreshold `json:"low_balance,omitempty" doc:"When balance.low is sent: at least one with that event, none without it." maxItems:"20"`
}

// WebhookChange is the body that changes a webhook endpoint: what is absent
// stays.
type WebhookChange struct {
	URL         *string            `json:"url,omitempty"         maxLength:"2000"                                                                                                               minLength:"1"`
	Description *string            `json:"description,omitempty" maxLength:"500"`
	Events      []string           `json:"events,omitempty"      enum:"movement.created,balance.low,alert.fired,alert.resolved"                                                                                            maxItems:"10" minItems:"1"`
	LowBalance  []WebhookThreshold `json:"low_balance,omitempty" doc:"All of them, an empty list for none."                                                                                      maxItems:"20"`
	Enabled     *bool              `json:"enabled,omitempty"     doc:"While it is disabled nothing is sent and new events are not kept for it; what waits goes on when it is enabled again."`
}

// WebhookThreshold is crossed when a customer's available credits of a type
// fall below an amount.
type WebhookThreshold struct {
	CreditType string `json:"credit_type" maxLength:"64"                                                          minLength:"1"`
	Below      string `json:"below"       doc:"An amount, at most 12 digits before the point and 6 after."   maxLength:"20" minLength:"1"`
}

// Webhook is a webhook endpoint. Its secret is not shown again.
type Webhook struct {
	ID             string             `json:"id"                doc:"Its id."                                                                                                 format:"uuid"`
	ProjectID      string             `json:"project_id"        format:"uuid"`
	URL            string             `json:"url"`
	Description    string             `json:"description"`
	Events         []string           `json:"events"`
	LowBalance     []WebhookThreshold `json:"low_balance"`
	Enabled        bool               `json:"enabled"`
	DisabledReason *string            `json:"disabled_reason"   doc:"Why it is disabled: asked for, it has answered 410, or nothing was delivered for five days."             enum:"asked,gone,failing"`
	DisabledAt     *string            `json:"disabled_at"       format:"date-time"`
	FailingSince   *string            `json:"failing_since"     doc:"Since when every attempt has failed; null if the last one did not."                                      format:"date-time"`
	OldSecretUntil *string            `json:"old_secret_until"  doc:"Until when the secret before signs too; null if there is none."                                          format:"date-time"`
	CreatedAt      string             `json:"created_at"        format:"date-time"`
}

// CreatedWebhook is a webhook endpoint with its secret.
type CreatedWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"What messages are signed with. It is shown once."`
}

// WebhookDelivery is a message on its way to an endpoint.
type WebhookDelivery struct {
	ID            string          `json:"id"              format:"uuid"`
	MessageID     string          `json:"message_id"      doc:"The header webhook-id: one for each event, the same on every attempt and for every endpoint."`
	Event         string          `json:"event"           doc:"The type of the event."`
	State         string          `json:"state"           doc:"pending until it is delivered or, after eight attempts, dead."                                    enum:"pending,delivered,dead"`
	Attempts      int64           `json:"attempts"        doc:"Attempts begun since it was made or sent again."`
	NextAttemptAt *string         `json:"next_attempt_at" doc:"When it is tried again; null unless it is pending."                                                format:"date-time"`
	LastAttemptAt *string         `json:"last_attempt_at" format:"date-time"`
	LastStatus    *int64          `json:"last_status"     doc:"The status of the last answer; null if there was none."`
	LastError     *string         `json:"last_error"      doc:"Why the last attempt did not deliver."`
	Payload       json.RawMessage `json:"payload"         doc:"What is sent."`
	CreatedAt     string          `json:"created_at"      format:"date-time"`
	FinishedAt    *string         `json:"finished_at"     format:"date-time"`
}

// WebhookPayload is the body of a message, in the form of Standard Webhooks.
type WebhookPayload struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp" doc:"When it happened." format:"date-time"`
	Data      any    `json:"data"`
}

// MovementCreated is the data of movement.created.
type MovementCreated struct {
	Movement Movement `json:"movement"`
	Balance  Balance  `json:"balance"  doc:"As the request has left it."`
}

// BalanceLow is the data of balance.low.
type BalanceLow struct {
	Customer   string  `json:"customer"`
	CreditType string  `json:"credit_type"`
	Below      string  `json:"below"       doc:"The threshold that was crossed."`
	Balance    Balance `json:"balance"`
	MovementID *string `json:"movement_id" doc:"The movement that has crossed it; null if it was a hold."`
}

// WebhookTest is the data of webhook.test.
type WebhookTest struct {
	WebhookID string `json:"webhook_id"`
}
