package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/idempotency"
)

// kept is what is stored of an answer.
type kept struct {
	status              sql.NullInt64
	contentType, header sql.NullString
	body                []byte // nil: none
}

var errText = errors.New("the resource or the content type of an answer is not UTF-8 or has a U+0000")

// keptAnswer picks what the policy keeps: nothing, if a repeat gets the
// resource as it is.
func keptAnswer(p *idempotency.Policy, a *idempotency.Answer) (kept, error) {
	if !isText(a.Resource.Kind) || !isText(a.Resource.ID) {
		return kept{}, errText
	}
	if p.Repeat == idempotency.CurrentResource {
		return kept{}, nil
	}
	if !isText(a.ContentType) {
		return kept{}, errText
	}
	k := kept{
		status:      sql.NullInt64{Int64: int64(a.Status), Valid: true},
		contentType: sql.NullString{String: a.ContentType, Valid: a.ContentType != ""},
		body:        a.Body,
	}
	if k.body == nil {
		k.body = []byte{}
	}
	if len(a.Header) > 0 {
		text, err := json.Marshal(a.Header)
		if err != nil {
			return kept{}, fmt.Errorf("encode the header of an answer: %w", err)
		}
		k.header = sql.NullString{String: string(text), Valid: true}
	}
	return k, nil
}
