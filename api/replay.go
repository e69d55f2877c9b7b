package api

import "encoding/json"

// ReplayRequest is the body of POST /v1/replay: one chunk of a session's
// recording. Members that are not listed are ignored.
type ReplayRequest struct {
	_         struct{}          `additionalProperties:"true"`
	SessionID string            `json:"session_id"        maxLength:"200"                                                                                             minLength:"1"`
	Chunk     int64             `json:"chunk"             doc:"The number of the chunk in its session, from 0. It names the chunk for ever, on every attempt." maximum:"1000000" minimum:"0"`
	AnonID    string            `json:"anon_id,omitempty" doc:"The device or browser that was recorded."                                                       maxLength:"200"   minLength:"1"`
	UserID    string            `json:"user_id,omitempty" doc:"The user who was recorded."                                                                     maxLength:"200"   minLength:"1"`
	Events    []json.RawMessage `json:"events"            doc:"The events of rrweb, objects in their order. They are kept byte for byte."`
}

// ReplayResponse is the 202 answer of POST /v1/replay.
type ReplayResponse struct {
	Duplicate bool `json:"duplicate"          doc:"There was a chunk of this number. The first one stays as it is."`
	Conflict  bool `json:"conflict,omitempty" doc:"Its events were others than these, which are not kept. Absent if they say the same."`
}

// Replay is a session of which there is a recording.
type Replay struct {
	SessionID string  `json:"session_id"`
	Person    *string `json:"person"     doc:"user_id, else anon_id; null if no chunk has either."`
	UserID    *string `json:"user_id"    doc:"The user of the chunk received last that has one."`
	AnonID    *string `json:"anon_id"    doc:"The anonymous id of the chunk received last that has one."`
	StartedAt string  `json:"started_at" doc:"When the first event happened, by the client's clock." format:"date-time"`
	EndedAt   string  `json:"ended_at"   doc:"When the last event happened."                                                    format:"date-time"`
	// Duration is in seconds.
	Duration   float64 `json:"duration"    doc:"From the first event to the last, in seconds."`
	Pages      int64   `json:"pages"       doc:"Pages that were come to."`
	Errors     int64   `json:"errors"      doc:"Errors that the page has logged, and custom events tagged error."`
	Clicks     int64   `json:"clicks"`
	Events     int64   `json:"events"`
	ChunkCount int64   `json:"chunk_count" doc:"Chunks that can be read."`
	Bytes      int64   `json:"bytes"       doc:"The events as they were sent."`
}

// ReplayDetail is a session with its chunks.
type ReplayDetail struct {
	Replay

	Chunks   []ReplayChunk `json:"chunks"    doc:"Those that can be read, in the order of their numbers."`
	Gaps     []int64       `json:"gaps"      doc:"Numbers between 0 and the greatest of which there is no chunk: the first 10,000."`
	GapCount int64         `json:"gap_count" doc:"How many such numbers there are."`
}

// ReplayChunk is a chunk of a recording.
type ReplayChunk struct {
	Chunk      int64  `json:"chunk"`
	Bytes      int64  `json:"bytes"       doc:"Its events as they were sent."`
	ReceivedAt string `json:"received_at" format:"date-time"`
}
