package actionpulse

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

const (
	// maxIntakeAnswer bounds what is read of an answer: a thousand rejections
	// fit.
	maxIntakeAnswer = 4 << 20
	// maxShown is how many characters of a text from the network are logged.
	maxShown = 300
)

// sender makes single requests to intake.
type sender struct {
	http   *http.Client
	server string
	agent  string
}

// intakeRequest is one attempt.
type intakeRequest struct {
	path string
	key  string
	body []byte
	// items is how many the body holds; 0 for a request that is no batch.
	items int
}

// intakeAnswer is what an attempt brought: the counts of a 202, or the words
// of a refusal.
type intakeAnswer struct {
	api.TrackResponse

	message   string
	requestID string
	// undone says that the server knows that nothing was changed.
	undone bool
	// stranger says who answered if it was not a server of ours.
	stranger string
}

// post makes one attempt. An answer that was cut short or does not account for
// every item is no answer.
func (s *sender) post(ctx context.Context, r intakeRequest) (intakeAnswer, retry.Outcome) {
	outcome := retry.Outcome{Kind: retry.Event}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.server+r.path, bytes.NewReader(r.body))
	if err != nil {
		outcome.Err = err
		return intakeAnswer{}, outcome
	}
	request.Header.Set("Authorization", "Bearer "+r.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", s.agent)
	response, err := s.http.Do(request)
	if err != nil {
		outcome.Err = r.hush(err)
		return intakeAnswer{}, outcome
	}
	text, err := readIntakeAnswer(response)
	if err != nil {
		outcome.Err = r.hush(fmt.Errorf("reading the answer: %w", err))
		return intakeAnswer{}, outcome
	}
	outcome.Status = response.StatusCode
	outcome.ShouldRetry = response.Header.Get("X-Should-Retry")
	outcome.RetryAfter = response.Header.Get("Retry-After")
	if outcome.Succeeded() {
		return r.readSuccess(response, text, outcome)
	}
	return r.readRefusal(response, text, outcome)
}

func readIntakeAnswer(response *http.Response) ([]byte, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, errors.Join(errNotHTTP, response.Body.Close())
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxIntakeAnswer))
	return text, errors.Join(err, response.Body.Close())
}

// readSuccess checks that a 2xx is an answer to this very request.
func (r intakeRequest) readSuccess(response *http.Response, text []byte, outcome retry.Outcome) (intakeAnswer, retry.Outcome) {
	var a intakeAnswer
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusAccepted || err != nil || media != "application/json" {
		a.stranger = r.clean(response.Status + ", " + response.Header.Get("Content-Type"))
		return a, outcome
	}
	if err := json.Unmarshal(text, &a.TrackResponse); err != nil {
		outcome.Err = fmt.Errorf("reading the answer: %w", err)
		return intakeAnswer{}, outcome
	}
	if r.items > 0 && !a.AccountsFor(r.items) {
		outcome.Err = fmt.Errorf("the answer does not account for the %d items of the request", r.items)
		return intakeAnswer{}, outcome
	}
	for i := range a.Rejected {
		a.Rejected[i].Code = api.RejectCode(r.clean(string(a.Rejected[i].Code)))
		a.Rejected[i].Message = r.clean(a.Rejected[i].Message)
	}
	return a, outcome
}

// readRefusal takes the code out of the envelope; an answer in another form is
// a proxy's.
func (r intakeRequest) readRefusal(response *http.Response, text []byte, outcome retry.Outcome) (intakeAnswer, retry.Outcome) {
	var e struct {
		Error struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
			Details   struct {
				Applied any `json:"applied"`
			} `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(text, &e); err != nil || e.Error.Code == "" {
		a := intakeAnswer{message: r.clean(response.Status)}
		if to := response.Header.Get("Location"); to != "" {
			a.message += " to " + r.clean(to)
		}
		return a, outcome
	}
	outcome.Code = r.clean(e.Error.Code)
	return intakeAnswer{
		message: r.clean(e.Error.Message), requestID: r.clean(e.Error.RequestID), undone: e.Error.Details.Applied == false,
	}, outcome
}

// clean makes a text from the network fit for a log, without the key.
func (r intakeRequest) clean(s string) string {
	return printable(strings.ReplaceAll(s, r.key, "[key]"))
}

// hushedError is one whose text quoted the key.
type hushedError struct {
	err  error
	text string
}

func (e *hushedError) Error() string { return e.text }

func (e *hushedError) Unwrap() error { return e.err }

// hush hides the key in the text of an error: net/http quotes an answer that is
// not HTTP.
func (r intakeRequest) hush(err error) error {
	if text := err.Error(); strings.Contains(text, r.key) {
		return &hushedError{err, strings.ReplaceAll(text, r.key, "[key]")}
	}
	return err
}

// printable replaces control characters and cuts a long text.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return s
}

// surelyNotTaken reports whether the server has certainly not done what the
// request asked for: it was never reached, or it has refused before any work.
// A 500 of intake means that nothing was accepted.
func surelyNotTaken(a intakeAnswer, o retry.Outcome) bool {
	if o.Err != nil {
		return neverReached(o.Err)
	}
	switch {
	case a.undone:
		return true
	case o.Status == http.StatusTooManyRequests:
		return true
	case o.Code == "":
		return o.Status < http.StatusInternalServerError && o.Status >= http.StatusMultipleChoices && o.Status != http.StatusRequestTimeout
	default:
		return o.Status <= http.StatusInternalServerError
	}
}

// neverReached reports whether no connection came about, or none to be trusted.
func neverReached(err error) bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return true
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
