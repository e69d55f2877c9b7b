package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// reader asks a running server for stored events.
type reader struct {
	url   string
	creds credentials
}

// events is an answer to a query of type events.
type events struct {
	Items         []row     `json:"items"`
	NextCursor    *string   `json:"next_cursor"`
	StoredThrough time.Time `json:"stored_through"`
}

// pageSize is the most that a query may ask for.
const pageSize = 200

// all returns every stored event. Nothing must be stored meanwhile.
func (r reader) all(ctx context.Context) ([]row, error) {
	var rows []row
	var cursor *string
	for {
		page, err := r.query(ctx, map[string]any{"type": "events", "limit": pageSize, "cursor": cursor})
		if err != nil {
			return nil, err
		}
		rows = append(rows, page.Items...)
		if page.NextCursor == nil {
			return rows, nil
		}
		cursor = page.NextCursor
	}
}

func (r reader) query(ctx context.Context, question map[string]any) (events, error) {
	var page events
	body, err := json.Marshal(question)
	if err != nil {
		return page, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/api/v1/projects/"+r.creds.ProjectID+"/query", bytes.NewReader(body))
	if err != nil {
		return page, err
	}
	request.Header.Set("Authorization", "Bearer "+r.creds.AccessToken)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return page, err
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return page, err
	}
	if response.StatusCode != http.StatusOK {
		return page, fmt.Errorf("query: %d %s", response.StatusCode, answer)
	}
	return page, json.Unmarshal(answer, &page)
}
