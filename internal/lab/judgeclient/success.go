package judgeclient

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/actionpulse/actionpulse/api"
)

// madeAt is the time of all that the scripted server makes up.
const madeAt = "2026-05-01T10:00:00.000Z"

// madeID is the id of all that the scripted server makes up.
const madeID = "018f9f5e-7c1a-7000-8000-3c5ab3e0a1b2"

// successOf returns the success of a request: status and body.
func (s *stand) successOf(r *Request, a Answer) (status int, body []byte) {
	api := &s.params.API
	if !api.Envelope {
		return api.SuccessStatus, []byte(api.SuccessBody)
	}
	duplicates := s.remember(r, a)
	switch {
	case strings.HasSuffix(r.Path, "/v1/track"):
		return http.StatusAccepted, api.Rejected(r.Items, a.Rejected, duplicates)
	case strings.HasSuffix(r.Path, "/v1/replay"):
		return http.StatusAccepted, encode(map[string]any{"duplicate": duplicates > 0 || a.Replayed})
	case strings.HasSuffix(r.Path, "/v1/identify"), strings.HasSuffix(r.Path, "/v1/alias"):
		return http.StatusAccepted, []byte("{}")
	default:
		return resource(r, a)
	}
}

// resource is the success of a method that is not intake.
func resource(r *Request, a Answer) (status int, body []byte) {
	switch {
	case r.Refresh, strings.HasSuffix(r.Path, "/auth/login"):
		return http.StatusOK, encode(tokens())
	case strings.HasSuffix(r.Path, "/topup"), strings.HasSuffix(r.Path, "/charge"), strings.HasSuffix(r.Path, "/adjust"):
		return http.StatusOK, encode(api.CreditMoved{
			Movement: api.Movement{ID: madeID, Kind: r.Path[strings.LastIndex(r.Path, "/")+1:], Customer: "lab", CreditType: "main", Amount: "1", Delta: "1", BalanceAfter: "100", CreatedAt: madeAt},
			Balance:  api.Balance{Posted: "100", Held: "0", Available: "100"},
		})
	case strings.HasSuffix(r.Path, "/operations/execute"):
		return http.StatusOK, []byte(`{"execution": {"id": "` + madeID + `", "flow": "lab", "version": 1, "status": "succeeded", "output": null, "error": null, "charged": "1", "created_at": "` + madeAt + `"}}`)
	case r.Method == http.MethodGet:
		return http.StatusOK, []byte(`{"items": [], "next_cursor": null}`)
	case a.Replayed:
		return http.StatusOK, encode(marker())
	default:
		return http.StatusCreated, encode(marker())
	}
}

func marker() api.Marker {
	return api.Marker{ID: madeID, ProjectID: madeID, Version: "lab", Environment: "production", TS: madeAt, Source: "deploy", CreatedAt: madeAt}
}

func tokens() api.Tokens {
	return api.Tokens{AccessToken: Secrets[NewToken], RefreshToken: laterRefresh, ExpiresIn: 900, OrganizationID: madeID, UserID: madeID}
}

// remember keeps the ids of a success and says how many were known.
func (s *stand) remember(r *Request, a Answer) (duplicates int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range r.Items {
		id := r.Items[i].ID
		if i < a.Rejected || id == "" {
			continue
		}
		if s.accepted[id] {
			duplicates++
		}
		s.accepted[id] = true
	}
	return duplicates
}

// trackAnswer is the 202 of POST /v1/track.
func trackAnswer(items []Item, rejected, duplicates int) []byte {
	out := api.TrackResponse{Rejected: []api.Rejection{}}
	for i := range items {
		if i >= rejected {
			out.Accepted++
			continue
		}
		var id *string
		if items[i].ID != "" {
			id = &items[i].ID
		}
		out.Rejected = append(out.Rejected, api.Rejection{Index: i, EventID: id, Code: api.RejectInvalidEventID, Message: "the lab rejects this item on purpose"})
	}
	out.Duplicates = min(duplicates, out.Accepted)
	return encode(out)
}

// encode writes what the lab itself has made up, which always can be written.
func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// object reads a JSON object.
func object(body []byte) (members, bool) {
	var m members
	err := json.Unmarshal(body, &m)
	return m, err == nil && m != nil
}
