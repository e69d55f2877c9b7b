package api

import "encoding/json"

// MarkerContent is what the maker of a release marker says.
type MarkerContent struct {
	Version     string                     `json:"version" minLength:"1" maxLength:"200" doc:"What was released, such as 1.4.2 or a commit."`
	TS          *string                    `json:"ts,omitempty" format:"date-time" doc:"When it was released; the time of the request if absent. A CI/CD step sends the same on every attempt, or none."`
	Environment *string                    `json:"environment,omitempty" minLength:"1" maxLength:"100" default:"production" doc:"Where it was released."`
	Commit      *string                    `json:"commit,omitempty" maxLength:"200"`
	URL         *string                    `json:"url,omitempty" maxLength:"2000" doc:"An http or https URL, such as the pipeline's."`
	Title       *string                    `json:"title,omitempty" maxLength:"500"`
	Metadata    map[string]json.RawMessage `json:"metadata,omitempty" doc:"An object of at most 16 KiB."`
}

// Marker is a release marker.
type Marker struct {
	ID          string                     `json:"id" format:"uuid"`
	ProjectID   string                     `json:"project_id" format:"uuid"`
	Version     string                     `json:"version"`
	Environment string                     `json:"environment"`
	TS          string                     `json:"ts" format:"date-time"`
	Commit      *string                    `json:"commit"`
	URL         *string                    `json:"url"`
	Title       *string                    `json:"title"`
	Metadata    map[string]json.RawMessage `json:"metadata" nullable:"true" doc:"The object that was sent; null if there was none."`
	Source      string                     `json:"source" enum:"deploy,manual"`
	CreatedAt   string                     `json:"created_at" format:"date-time"`
	DeletedAt   *string                    `json:"deleted_at,omitempty" format:"date-time" doc:"When it was deleted; absent if it was not."`
}

// MarkerOfKey is the list of markers asked for by ?idempotency_key=: it has one
// item and says what is known of the key.
type MarkerOfKey struct {
	List[Marker]
	IdempotencyKey
}
