// Package webhook owns what a project is told of by HTTP: endpoints and their
// secrets, messages, and the deliveries of messages to endpoints. The form is
// that of Standard Webhooks: signed, with one id for each fact.
//
// Invariants:
//   - a message is written in the transaction of the fact that it tells of, so
//     that there is neither without the other; its bytes never change;
//   - a message has one id, whatever the number of endpoints, attempts and
//     processes; a receiver that remembers ids acts once;
//   - a delivery is tried by one worker at a time, and only who has claimed it
//     last may say what came of it;
//   - a delivery ends as delivered or as dead; what is dead is kept, shown and
//     can be sent again;
//   - an endpoint's secrets are shown once each and are in no log and no entry
//     of the audit log.
//
// It never promises an order of deliveries, and it never speaks HTTP itself.
package webhook

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/publicnet"
)

// Type names a kind of message. It is part of the API: never renamed.
type Type string

// The types. Test is sent on request and cannot be subscribed to.
const (
	MovementCreated Type = "movement.created"
	BalanceLow      Type = "balance.low"
	AlertFired      Type = "alert.fired"
	AlertResolved   Type = "alert.resolved"
	Test            Type = "webhook.test"
)

// Types are those that an endpoint can ask for.
var Types = []Type{MovementCreated, BalanceLow, AlertFired, AlertResolved}

// Endpoint is where messages are sent to.
type Endpoint struct {
	ID        string
	ProjectID string
	Content

	Secrets Secrets
	State   State
	// Reason is why it is disabled; empty if it is not.
	Reason Reason
	// FailingSince is when deliveries began to fail without one that
	// succeeded; zero if they do not.
	FailingSince time.Time
	CreatedAt    time.Time
	// EndedAt is when it was disabled or deleted.
	EndedAt time.Time
}

// Content is what the maker of an endpoint says.
type Content struct {
	// URL is http or https, at most 2,000 bytes.
	URL         string
	Description string // at most 500 characters
	Wishes
}

// Threshold is crossed when what is available of a credit type falls below an
// amount.
type Threshold struct {
	CreditType string
	Below      credit.Amount
}

// State says whether an endpoint gets messages. While it is disabled no
// messages are made for it, and deliveries that wait go on waiting.
type State string

// The states. Deleted is for good.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled"
	Deleted  State = "deleted"
)

// Reason says why an endpoint is disabled.
type Reason string

// The reasons.
const (
	// Asked: somebody has asked for it.
	Asked Reason = "asked"
	// Gone: it has answered 410.
	Gone Reason = "gone"
	// Failing: nothing could be delivered for days.
	Failing Reason = "failing"
)

// FailingLimit is how long deliveries may fail, without one that succeeds,
// until the endpoint is disabled.
const FailingLimit = 5 * 24 * time.Hour

// The longest of each.
const (
	urlLimit         = 2000 // bytes
	descriptionLimit = 500  // characters
	creditTypeLimit  = 64   // characters
	thresholdLimit   = 20
)

// validate checks the content. Fault: validation_failed, with the member at
// fault.
func (c *Content) validate(allowPrivate bool) error {
	if err := validateURL(c.URL, allowPrivate); err != nil {
		return err
	}
	if !validText(c.Description, descriptionLimit) {
		return fault.Field("description", "description is a text of at most %d characters without control characters", descriptionLimit)
	}
	if len(c.Types) == 0 {
		return fault.Field("events", "events names at least one type of event")
	}
	for i, t := range c.Types {
		if !slices.Contains(Types, t) || slices.Contains(c.Types[:i], t) {
			return fault.Field("events", "events names each of these at most once: %v", Types)
		}
	}
	return c.validateThresholds()
}

func (c *Content) validateThresholds() error {
	if slices.Contains(c.Types, BalanceLow) != (len(c.LowBalance) > 0) {
		return fault.Field("low_balance", "low_balance says when %s is sent: at least one threshold with it, none without it", BalanceLow)
	}
	if len(c.LowBalance) > thresholdLimit {
		return fault.Field("low_balance", "low_balance holds at most %d thresholds", thresholdLimit)
	}
	for i, t := range c.LowBalance {
		if t.CreditType == "" || !validText(t.CreditType, creditTypeLimit) {
			return fault.Field("low_balance", "credit_type is a text of 1 to %d characters without control characters", creditTypeLimit)
		}
		if slices.Contains(c.LowBalance[:i], t) {
			return fault.Field("low_balance", "low_balance holds each threshold once")
		}
	}
	return nil
}

func validText(s string, limit int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= limit && !strings.ContainsFunc(s, unicode.IsControl)
}

// validateURL refuses what can never be sent to. What a name stands for is
// looked at when it is connected to, each time.
func validateURL(text string, allowPrivate bool) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > urlLimit || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return fault.Field("url", "url is an http or https URL of at most %d bytes", urlLimit)
	}
	if u.User != nil {
		return fault.Field("url", "url must not hold a user or a password: what is sent is signed")
	}
	if u.Fragment != "" {
		return fault.Field("url", "url must not hold a fragment: it is never sent")
	}
	if address, err := netip.ParseAddr(u.Hostname()); err == nil && !allowPrivate && !publicnet.Is(address) {
		return fault.Field("url", "url must not be an address of a private network")
	}
	return nil
}
