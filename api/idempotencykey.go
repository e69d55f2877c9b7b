package api

// IdempotencyKey is what is known of an Idempotency-Key.
type IdempotencyKey struct {
	Key         string `json:"key"`
	Unit        Unit   `json:"unit" doc:"The unit of work that the key names."`
	FirstSeenAt string `json:"first_seen_at" format:"date-time"`
	// Repeats and Conflicts may lag a second.
	Repeats   int64 `json:"repeats" doc:"How often the same request came again. It may lag a second."`
	Conflicts int64 `json:"conflicts" doc:"How often another request came with this key. It may lag a second."`
	// ResponseExpiresAt is null if no answer is stored, or for ever.
	ResponseExpiresAt *string `json:"response_expires_at" format:"date-time" doc:"Until when the first answer is kept; null if repeats get the resource as it is now."`
}

// Unit is a unit of work.
type Unit struct {
	Kind   string `json:"kind" doc:"What kind of work, such as release_marker."`
	ID     string `json:"id"`
	Status string `json:"status,omitempty" doc:"The state it is in now."`
}
