package webhook

import (
	"fmt"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/retry"
)

// Delivery is a message on its way to an endpoint.
type Delivery struct {
	// Number orders the deliveries of an endpoint.
	Number     int64
	ID         string
	EndpointID string
	Message    Message
	State      DeliveryState
	// Attempts are those begun since it was made or sent again.
	Attempts int64
	// NextAttemptAt is when it may be claimed, or when its claim ends; zero
	// unless it is pending.
	NextAttemptAt time.Time
	LastAttemptAt time.Time
	// LastStatus is that of the last answer, 0 if there was none; LastError
	// why it was no success.
	LastStatus int64
	LastError  string
	CreatedAt  time.Time
	FinishedAt time.Time
}

// DeliveryState says how a delivery stands.
type DeliveryState string

// The states:
//
//	pending ──2xx──────────────────▶ delivered
//	   │ └─── any other, again later     │
//	   ├────── the last, or 410 ───▶ dead│
//	   ◀──────── sent again ─────────┴───┘
const (
	Pending   DeliveryState = "pending"
	Delivered DeliveryState = "delivered"
	Dead      DeliveryState = "dead"
)

// schedule is how long to wait after the first failed attempt, the second and
// so on; after the last there is one more attempt, and no further.
var schedule = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

const (
	// MaxAttempts is how often a delivery is tried until it is dead.
	MaxAttempts = int64(len(schedule) + 1)
	// jitter is how far a wait may be off to either side.
	jitter = 0.25
	// The statuses that mean something of their own.
	statusGone            = 410
	statusTooManyRequests = 429
	statusUnavailable     = 503
	// maxRetryAfter bounds what a receiver may ask for.
	maxRetryAfter = 24 * time.Hour
)

// Claimed is a delivery that a worker has to itself until its claim ends.
type Claimed struct {
	ID, EndpointID string
	// Epoch is that of the claim.
	Epoch int64
	// Attempt counts from 1.
	Attempt int64
	URL     string
	Secrets Secrets
	Message Message
}

// Request is what a sender sends.
type Request struct {
	URL string
	// ID, Timestamp and Signature are the headers webhook-id,
	// webhook-timestamp and webhook-signature.
	ID, Timestamp, Signature string
	Body                     []byte
}

// Response is what came back.
type Response struct {
	// Err says that there was no answer. Its text is shown.
	Err    error
	Status int
	// RetryAfter is the header as it came.
	RetryAfter string
}

// request signs an attempt.
func (c *Claimed) request(now time.Time) (Request, error) {
	signature, err := Sign(c.Secrets.Live(now), c.Message.ID, now, c.Message.Body)
	return Request{
		URL: c.URL, ID: c.Message.ID, Timestamp: strconv.FormatInt(now.Unix(), 10), Signature: signature, Body: c.Message.Body,
	}, err
}

// Result is what came of an attempt.
type Result struct {
	ID, EndpointID string
	// Epoch is that of the claim.
	Epoch int64
	State DeliveryState
	// NextAttemptAt is set if the delivery is still pending.
	NextAttemptAt time.Time
	Status        int // 0: no answer
	Error         string
	// Gone says that the endpoint wants no more.
	Gone bool
	At   time.Time
}

// settle is the table of what follows from an answer: a 2xx is a success; 410
// ends the delivery and disables the endpoint; 429 and 503 are tried again
// exactly after their Retry-After; everything else, answer or not, is tried
// again by the schedule. chance is from 0 up to 1.
func (c *Claimed) settle(r Response, now time.Time, chance float64) Result {
	result := Result{ID: c.ID, EndpointID: c.EndpointID, Epoch: c.Epoch, At: now, State: Pending, Status: r.Status}
	switch {
	case r.Err != nil:
		result.Status, result.Error = 0, shorten(r.Err.Error())
	case r.Status >= 200 && r.Status < 300:
		result.State = Delivered
		return result
	default:
		result.Error = fmt.Sprintf("the answer was %d", r.Status)
	}
	result.Gone = r.Err == nil && r.Status == statusGone
	if result.Gone || c.Attempt >= MaxAttempts {
		result.State = Dead
		return result
	}
	result.NextAttemptAt = now.Add(c.wait(r, now, chance))
	return result
}

// wait is how long to wait after this attempt.
func (c *Claimed) wait(r Response, now time.Time, chance float64) time.Duration {
	if r.Err == nil && (r.Status == statusTooManyRequests || r.Status == statusUnavailable) {
		if asked, ok := retry.ParseRetryAfter(r.RetryAfter, now); ok {
			return min(asked, maxRetryAfter)
		}
	}
	base := float64(schedule[c.Attempt-1])
	return time.Duration(base * (1 - jitter + 2*jitter*chance))
}

// errorLimit is how much of an error is kept, in characters.
const errorLimit = 300

func shorten(text string) string {
	if runes := []rune(text); len(runes) > errorLimit {
		return string(runes[:errorLimit])
	}
	return text
}
