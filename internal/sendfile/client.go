package sendfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// maxAnswer bounds what is read of an answer: a thousand rejections fit.
const maxAnswer = 4 << 20

// client makes one request at a time to /v1/track.
type client struct {
	http      *http.Client
	url       string
	key       string
	userAgent string
}

// answer is what a request brought: the counts of a 202, or the words of a
// refusal.
type answer struct {
	api.TrackResponse

	// message and requestID are of the envelope.
	message   string
	requestID string
	// stranger says who answered if it was not a server of ours.
	stranger string
}

// post sends a body that holds n items. An answer that was cut short or does
// not account for n items is no answer.
func (c *client) post(ctx context.Context, body []byte, n int) (answer, retry.Outcome) {
	outcome := retry.Outcome{Kind: retry.Event}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		outcome.Err = err
		return answer{}, outcome
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", c.userAgent)
	response, err := c.http.Do(request)
	if err != nil {
		outcome.Err = err
		return answer{}, outcome
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		outcome.Err = fmt.Errorf("reading the answer: %w", err)
		return answer{}, outcome
	}
	outcome.Status = response.StatusCode
	outcome.ShouldRetry = response.Header.Get("X-Should-Retry")
	outcome.RetryAfter = response.Header.Get("Retry-After")
	if outcome.Succeeded() {
		return readSuccess(response, text, n, outcome)
	}
	return c.readRefusal(response, text, outcome)
}

// readSuccess checks that a 2xx is an answer to this very request.
func readSuccess(response *http.Response, text []byte, n int, outcome retry.Outcome) (answer, retry.Outcome) {
	var a answer
	if response.StatusCode != http.StatusAccepted || !isJSON(response.Header) {
		a.stranger = fmt.Sprintf("%s, %s", response.Status, response.Header.Get("Content-Type"))
		return a, outcome
	}
	if err := json.Unmarshal(text, &a.TrackResponse); err != nil {
		outcome.Err = fmt.Errorf("reading the answer: %w", err)
		return answer{}, outcome
	}
	if !a.AccountsFor(n) {
		outcome.Err = fmt.Errorf("the answer does not account for the %d items of the request", n)
		return answer{}, outcome
	}
	return a, outcome
}

func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// readRefusal takes the code out of the envelope; an answer in another form
// is a proxy's. A message is shortened, and never repeats the key, whoever
// wrote it.
func (c *client) readRefusal(response *http.Response, text []byte, outcome retry.Outcome) (answer, retry.Outcome) {
	var envelope struct {
		Error struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil || envelope.Error.Code == "" {
		a := answer{message: response.Status}
		if to := response.Header.Get("Location"); to != "" {
			a.message += " to " + c.clean(to)
		}
		return a, outcome
	}
	outcome.Code = envelope.Error.Code
	return answer{message: c.clean(envelope.Error.Message), requestID: c.clean(envelope.Error.RequestID)}, outcome
}

// clean makes a text from the network fit for a terminal, without the key.
func (c *client) clean(s string) string {
	if c.key != "" {
		s = strings.ReplaceAll(s, c.key, "[key]")
	}
	return printable(s, 300)
}

// printable replaces control characters and cuts a text that is longer than
// the given number of characters.
func printable(s string, longest int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}
