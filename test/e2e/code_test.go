package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/apptest"
)

const goodBatch = `{"events":[{"event":"e","anon_id":"a"}]}`

// refusal is one answer of the error envelope.
type refusal struct {
	status int
	header http.Header
	code   api.Code
	error  map[string]any
}

// send sends a request as it is and reads the envelope.
func send(t *testing.T, method, url, secret string, body io.Reader) refusal {
	t.Helper()
	return readRefusal(t, do(t, method, url, secret, body)) //nolint:bodyclose // readRefusal closes it
}

// do sends a request as it is.
func do(t *testing.T, method, url, secret string, body io.Reader) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func readRefusal(t *testing.T, response *http.Response) refusal {
	t.Helper()
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	asDocumented(t, response, content)
	var envelope struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal(content, &envelope); err != nil || envelope.Error == nil {
		t.Fatalf("%d %q is no envelope: %v", response.StatusCode, content, err)
	}
	code, _ := envelope.Error["code"].(string)
	return refusal{response.StatusCode, response.Header, api.Code(code), envelope.Error}
}

// cause makes a server refuse, the one that is given or one of its own.
type cause func(*testing.T, *apptest.Running) refusal

// TestEveryCodeHasACause produces every row of the catalogue, each code with
// each of its statuses, with a real cause and checks the envelope against what
// the catalogue says of it. Causes that need nothing of their own share a
// server.
func TestEveryCodeHasACause(t *testing.T) {
	shared := apptest.New(t, slices.Concat([]string{private}, plans)...).MustServe()
	causes := map[api.Code]cause{
		api.CodeInvalidCredentials: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "POST", r.URL+"/api/v1/auth/login", "", strings.NewReader(loginBody(r.Setup.Email, "wrong")))
		},
		api.CodeConflict: func(t *testing.T, r *apptest.Running) refusal {
			url := r.URL + own(r) + "/members/" + r.Setup.UserID
			return send(t, "PATCH", url, r.Setup.AccessToken, strings.NewReader(`{"role":"viewer"}`))
		},
		api.CodePrivacyJobActive: privacyJobActive,
		api.CodeInvalidJSON: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(`{"events":`))
		},
		api.CodeUnauthenticated: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "POST", r.URL+"/v1/track", "", strings.NewReader(goodBatch))
		},
		api.CodeTokenExpired:    expiredToken,
		api.CodePaymentRequired: suspended,
		api.CodeForbidden: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "POST", r.URL+"/v1/track", r.Setup.CIToken, strings.NewReader(goodBatch))
		},
		api.CodeNotFound: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "POST", r.URL+"/v1/trac", r.Setup.ServerKey, strings.NewReader(goodBatch))
		},
		api.CodeMethodNotAllowed: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "DELETE", r.URL+"/v1/track", r.Setup.ServerKey, nil)
		},
		api.CodeRequestTimeout: slowBody,
		api.CodePayloadTooLarge: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(strings.Repeat(" ", 1<<20+1)))
		},
		api.CodeUnsupportedMediaType: func(t *testing.T, r *apptest.Running) refusal {
			response, err := http.DefaultClient.Do(withHeader(t, r, "Content-Encoding", "br"))
			if err != nil {
				t.Fatal(err)
			}
			return readRefusal(t, response)
		},
		api.CodeValidationFailed: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(`{"events":[]}`))
		},
		api.CodeRateLimited: func(t *testing.T, _ *apptest.Running) refusal {
			r := apptest.New(t, "--rate.requests_per_second", "0.001", "--rate.burst", "1").MustServe()
			r.TrackNew(1)
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(goodBatch))
		},
		api.CodeQuotaExceeded:      exhausted("one"),
		api.CodeTrialQuotaExceeded: exhausted("trial"),
		api.CodeInternal: func(t *testing.T, _ *apptest.Running) refusal {
			r := apptest.New(t, "--storage.min_free_bytes", "900TB").MustServe()
			return send(t, "POST", r.URL+"/v1/track", r.Setup.ServerKey, strings.NewReader(goodBatch))
		},
		api.CodeUnavailable:            crowded,
		api.CodeQueryTimeout:           slowQuery,
		api.CodeIdempotencyKeyRequired: func(t *testing.T, r *apptest.Running) refusal { return refusedMove(t, r, of("topup", "ada", "", "1")) },
		api.CodeInvalidRequest: func(t *testing.T, r *apptest.Running) refusal {
			return refusedMove(t, r, of("topup", "ada", "k", "1e3"))
		},
		api.CodeCustomerNotFound: func(t *testing.T, r *apptest.Running) refusal {
			return refusedMove(t, r, of("charge", "nobody", "k", "1"))
		},
		api.CodeInsufficientCredits: func(t *testing.T, r *apptest.Running) refusal {
			return refusedMove(t, r, of("charge", "poor", "k2", "2"), of("topup", "poor", "k1", "1"))
		},
		api.CodeFlowNotFound: func(t *testing.T, r *apptest.Running) refusal {
			return send(t, "GET", r.URL+"/v1/flows/none", r.Setup.ProjectKey, nil)
		},
		api.CodeInvalidFlowInput: failing("invalid_flow_input"),
		api.CodeModelError:       failing("model_error"),
		api.CodeStepFailed:       failing("step_failed"),
		api.CodeExecutionTimeout: failing("execution_timeout"),
		api.CodeOutcomeUnknown:   failing("outcome_unknown"),
		api.CodeIdempotencyConflict: func(t *testing.T, r *apptest.Running) refusal {
			return refusedMove(t, r, of("charge", "ada", "k3", "1"), of("topup", "ada", "k3", "1"))
		},
	}
	others := map[api.Code]cause{api.CodeValidationFailed: keyWithAnotherBody}
	for _, spec := range api.Catalogue {
		t.Run(fmt.Sprint(spec.Code, " ", spec.Status), func(t *testing.T) {
			produce := causes[spec.Code]
			if spec != api.Lookup(spec.Code) { // a second status
				produce = others[spec.Code]
			}
			if produce == nil {
				t.Fatal("nothing here produces it")
			}
			r := produce(t, shared)
			details, ok := r.error["details"].(map[string]any)
			if !ok || r.code != spec.Code || r.status != spec.Status {
				t.Fatalf("%d %v, want %d %s", r.status, r.error, spec.Status, spec.Code)
			}
			if details["retryable"] != spec.Retryable || r.header.Get("X-Should-Retry") != fmt.Sprint(spec.ShouldRetry) {
				t.Errorf("details %v, X-Should-Retry %q", details, r.header.Get("X-Should-Retry"))
			}
			if id := r.header.Get("X-Request-Id"); id == "" || r.error["request_id"] != id || r.error["message"] == "" {
				t.Errorf("%v, X-Request-Id %q", r.error, id)
			}
			if wait := r.header.Get("Retry-After"); (spec.Code == api.CodeRateLimited || spec.Code == api.CodeUnavailable || spec.Code == api.CodePrivacyJobActive) && wait == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

func withHeader(t *testing.T, r *apptest.Running, name, value string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/v1/track", strings.NewReader(goodBatch))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.Setup.ServerKey)
	request.Header.Set(name, value)
	return request
}
