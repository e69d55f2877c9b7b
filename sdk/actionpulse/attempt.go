package actionpulse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// maxAnswer is the most that an answer may hold, in bytes. It is far more than
// any page of a list, and keeps a server gone wrong from filling the memory.
const maxAnswer = 64 << 20

// trail is what the attempts of one call have met. They follow one another.
type trail struct {
	kind   retry.Kind
	stream bool
	sent   int
	// unknown says that an attempt may have made the change.
	unknown bool
}

type trailKey struct{}

func withTrail(ctx context.Context, t *trail) context.Context {
	return context.WithValue(ctx, trailKey{}, t)
}

// attempts makes single attempts. It stands below retry.Transport and hands it
// whole answers only: one that is cut short is no answer there, and is
// repeated where a repeat is safe.
type attempts struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (a attempts) RoundTrip(request *http.Request) (*http.Response, error) {
	t, ok := request.Context().Value(trailKey{}).(*trail)
	if !ok {
		return a.base.RoundTrip(request)
	}
	if ctx := request.Context(); ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), closeBody(request))
	}
	t.sent++
	response, err := a.base.RoundTrip(request)
	if err != nil {
		t.unknown = t.unknown || !neverSent(err)
		return nil, err
	}
	if t.stream && succeeded(response.StatusCode) {
		return response, nil
	}
	content, err := readAnswer(response)
	if err != nil {
		t.unknown = true
		return nil, err
	}
	if !succeeded(response.StatusCode) {
		content = withoutCredential(response, content, request.Header.Get("Authorization"))
		t.unknown = t.unknown || appliedBy(t.kind, response.StatusCode, readEnvelope(content)) == AppliedUnknown
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	return response, nil
}

// errNotHTTP is why an answer is none: the server has left HTTP, and what is
// its body then does not end with the request's context.
var errNotHTTP = errors.New("the server switched to another protocol")

// readAnswer reads the body of an answer to its end and closes it.
func readAnswer(response *http.Response) ([]byte, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, errors.Join(errNotHTTP, response.Body.Close())
	}
	return readWhole(response.Body)
}

// withoutCredential takes the credential out of a refusal, whose words become
// an error's: what answers may send back what it was sent. Location goes
// altogether, as it is not followed, and net/http quotes one that is no URL.
func withoutCredential(response *http.Response, content []byte, authorization string) []byte {
	response.Header.Del("Location")
	credential := strings.TrimPrefix(authorization, "Bearer ")
	if credential == "" {
		return content
	}
	for name, values := range response.Header {
		for i, value := range values {
			response.Header[name][i] = strings.ReplaceAll(value, credential, hidden)
		}
	}
	return bytes.ReplaceAll(content, []byte(credential), []byte(hidden))
}

// hidden stands in the place of a credential.
const hidden = "[credential]"

// closeBody does what a transport does with a request that it does not make.
func closeBody(request *http.Request) error {
	if request.Body == nil {
		return nil
	}
	return request.Body.Close()
}

// readWhole reads a body to its end and closes it.
func readWhole(body io.ReadCloser) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	err = errors.Join(err, body.Close())
	if err == nil && len(content) > maxAnswer {
		err = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer was cut short: %w", err)
	}
	return content, nil
}

// neverSent reports whether an attempt has ended before a connection was
// there.
func neverSent(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

func succeeded(status int) bool { return status >= 200 && status < 300 }

// envelope is the body of a refusal; its code is empty if it is not in the
// form of the API.
type envelope struct {
	api.ErrorBody
	raw json.RawMessage
}

func readEnvelope(content []byte) envelope {
	var body struct {
		Error struct {
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	var e envelope
	var whole api.Error
	if json.Unmarshal(content, &body) != nil || json.Unmarshal(content, &whole) != nil {
		return e
	}
	e.ErrorBody, e.raw = whole.Error, body.Error.Details
	return e
}

// appliedBy says what one refusal tells of the change. A failure of intake
// means that nothing was accepted.
func appliedBy(kind retry.Kind, status int, e envelope) Applied {
	if kind == retry.Read {
		return AppliedNo
	}
	switch e.Code {
	case "":
		if status == http.StatusRequestTimeout || status >= http.StatusInternalServerError {
			return AppliedUnknown
		}
		return AppliedNo
	case api.CodeInternal:
		if kind == retry.Event {
			return AppliedNo
		}
		return AppliedUnknown
	case api.CodeUnavailable:
		return appliedAs(e.Details.Applied)
	}
	// A conflict may name an execution, which is another's.
	if e.Details.ExecutionID != "" && status != http.StatusConflict {
		return AppliedYes
	}
	if status >= http.StatusInternalServerError {
		return AppliedUnknown
	}
	return AppliedNo
}

// appliedAs reads details.applied.
func appliedAs(value any) Applied {
	switch value {
	case true:
		return AppliedYes
	case false:
		return AppliedNo
	}
	return AppliedUnknown
}
