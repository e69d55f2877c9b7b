package record

import "time"

const (
	// MaxTransit is the largest difference between a request's sent_at and
	// its receipt that counts as transit; a larger one is clock skew.
	MaxTransit = 5 * time.Minute
	// MaxAge is how far in the past an event's time may lie.
	MaxAge = 48 * time.Hour
	// MaxAhead is how far in the future an event's time may lie.
	MaxAhead = 5 * time.Minute
)

// Clock is what one request says about its sender's clock.
type Clock struct {
	// SentAt is the request's sent_at in milliseconds since 1970; meaningful
	// only if HasSentAt.
	SentAt    int64
	HasSentAt bool
	// Historical keeps past times as they are and corrects no skew.
	Historical bool
}

// Resolve returns the time to store for an event and how it came about.
// client is the time the client sent, if present; received is the receipt
// time; all in milliseconds since 1970. The result depends on nothing else, so
// it is the same however often and whenever it is computed.
func (c Clock) Resolve(client int64, present bool, received int64) (int64, TSStatus) {
	if !present {
		return received, TSAbsent
	}
	ts, status := client, TSOK
	if skew := received - c.SentAt; c.HasSentAt && !c.Historical && outside(skew, MaxTransit) {
		ts, status = client+skew, TSSkewCorrected
	}
	switch {
	case ts > received+MaxAhead.Milliseconds():
		return received, TSClampedFuture
	case ts < received-MaxAge.Milliseconds() && !c.Historical:
		return received, TSClampedPast
	default:
		return ts, status
	}
}

func outside(ms int64, limit time.Duration) bool {
	return ms > limit.Milliseconds() || ms < -limit.Milliseconds()
}
