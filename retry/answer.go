package retry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

const (
	// maxEnvelope is how much of a refusal is read, in bytes, to find the
	// envelope.
	maxEnvelope = 1 << 20
	// maxDrain is how much more of an answer that nobody wants is read, so that
	// its connection can be used again.
	maxDrain = 64 << 10
)

// answer is what came of one attempt.
type answer struct {
	// response is nil if there was none.
	response *http.Response
	outcome  Outcome
}

// newAnswer reads what a response says. A refusal, 4xx or 5xx, is read up to
// maxEnvelope, and its response then has a body with all of it again; one that
// is cut short within that is no answer. Others keep their body unread.
func newAnswer(response *http.Response, kind Kind) answer {
	if response.Body == nil {
		response.Body = http.NoBody
	}
	o := Outcome{
		Kind: kind, Status: response.StatusCode,
		ShouldRetry: response.Header.Get(headerShouldRetry), RetryAfter: response.Header.Get(headerRetryAfter),
	}
	if response.StatusCode < http.StatusBadRequest {
		return answer{response, o}
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxEnvelope+1))
	if err != nil {
		response.Body.Close() //nolint:errcheck // there is no answer
		return answer{outcome: Outcome{Kind: kind, Err: fmt.Errorf("reading the answer: %w", err)}}
	}
	if len(content) > maxEnvelope {
		response.Body = readCloser{io.MultiReader(bytes.NewReader(content), response.Body), response.Body}
		return answer{response, o}
	}
	response.Body.Close() //nolint:errcheck // it has been read to its end
	response.Body = io.NopCloser(bytes.NewReader(content))
	return answer{response, withEnvelope(o, content)}
}

// withEnvelope adds to an outcome what its refusal says about a repeat. An answer
// in another form adds nothing: it is a proxy's. A conflict says in
// details.retryable what X-Should-Retry says, and keeps it where a proxy takes
// the header away.
func withEnvelope(o Outcome, content []byte) Outcome {
	var envelope struct {
		Error struct {
			Code    string `json:"code"`
			Details struct {
				Applied   json.RawMessage `json:"applied"`
				Retryable json.RawMessage `json:"retryable"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(content, &envelope) != nil {
		return o
	}
	o.Code = envelope.Error.Code
	switch string(envelope.Error.Details.Applied) {
	case "true":
		o.Applied = AppliedTrue
	case "false":
		o.Applied = AppliedFalse
	case `"unknown"`:
		o.Applied = AppliedUnknown
	}
	retryable, err := strconv.ParseBool(string(envelope.Error.Details.Retryable))
	if err == nil && o.ShouldRetry == "" && o.Status == http.StatusConflict {
		o.ShouldRetry = strconv.FormatBool(retryable)
	}
	return o
}

// discard lets go of an answer that is followed by another.
func (a *answer) discard() {
	if a.response == nil {
		return
	}
	io.Copy(io.Discard, io.LimitReader(a.response.Body, maxDrain)) //nolint:errcheck // only the connection profits
	a.response.Body.Close()                                        //nolint:errcheck // it is not used
}
