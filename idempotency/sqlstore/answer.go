package sqlstore

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/actionpulse/actionpulse/idempotency"
)

// kept is what is stored of an answer.
type kept struct {
	status              sql.NullInt64
	contentType, header sql.NullString
	body                []byte // nil: none
}

// keptAnswer picks what the policy keeps: nothing, if a repeat gets the
// resource as it is.
func keptAnswer(p *idempotency.Policy, a *idempotency.Answer) (kept, error) {
	if p.Repeat == idempotency.CurrentResource {
		return kept{}, nil
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
