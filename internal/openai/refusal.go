package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/actionpulse/actionpulse/internal/callhttp"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/retry"
)

// maxMessage is how much of what a provider says is shown, in characters.
const maxMessage = 300

// quotaCode says that money is missing, with the status that otherwise says
// that it was too fast.
const quotaCode = "insufficient_quota"

// envelope is what a provider says of an error.
type envelope struct {
	// there says that it was the provider who spoke: the answer is a JSON
	// object with a member error.
	there         bool
	message, code string
	// used is what the provider has counted besides.
	used model.Usage
}

// readEnvelope reads a refusal: {"error": {"message", "code"}}, or
// {"error": "text"} as some servers have it.
func readEnvelope(content []byte) envelope {
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if !bytes.Contains(content, []byte(`"error"`)) { // as is so of nearly every event of a stream
		return envelope{}
	}
	if json.Unmarshal(content, &outer) != nil || len(outer.Error) == 0 || string(outer.Error) == "null" {
		return envelope{}
	}
	e := envelope{there: true}
	if json.Unmarshal(outer.Error, &e.message) == nil {
		return e
	}
	var inner struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(outer.Error, &inner) == nil {
		e.message, e.code = inner.Message, strings.Trim(string(inner.Code), `"`)
		if e.code == "" || e.code == "null" {
			e.code = inner.Type
		}
	}
	return e
}

// refusal makes an error of an answer that is no success.
func (p *provider) refusal(response *http.Response) error {
	// What cannot be read of it is missing from the message; the status stands.
	content, _, _ := callhttp.Read(response.Body, maxRefusal)
	said := readEnvelope(content)
	said.used = readUsage(content).model()
	e := judge(response.StatusCode, response.Header, said, p.params.Now())
	if e.After > 0 && (response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable) {
		p.gate.close(e.After)
	}
	return e
}

// judge is the table of what follows from an answer that is no success: that
// of package retry for requests with a key, as an answer in a foreign form,
// and what providers mean by a conflict (somebody else holds a lock), by any
// error of theirs from 500 on, and by a quota. Who has counted tokens has done
// the work, and would count them again.
func judge(status int, h http.Header, e envelope, now time.Time) *model.Error {
	out := &model.Error{Outcome: model.Refused, Status: status, Message: describe(status, e), Usage: e.used}
	if e.used != (model.Usage{}) {
		return out
	}
	said := retry.Outcome{Kind: retry.Keyed, Status: status, ShouldRetry: h.Get("X-Should-Retry"), RetryAfter: h.Get("Retry-After")}
	verdict := retry.Decide(said, now)
	out.Retryable = verdict.Retry
	if status == http.StatusConflict || (status >= http.StatusInternalServerError && e.there) {
		out.Retryable = !strings.EqualFold(said.ShouldRetry, "false")
	}
	if e.code == quotaCode {
		out.Retryable = false
	}
	if out.Retryable {
		out.After = after(h, now)
	}
	if lost(status, e) {
		out.Outcome = model.Unknown
	}
	return out
}

// lost says that the provider may be at work: from 502 on, but for 503, it may
// be a proxy that has lost it; and a time that was over may be that of what is
// behind the one who says so in the provider's own form.
func lost(status int, e envelope) bool {
	if status == http.StatusGatewayTimeout {
		return true
	}
	return status >= http.StatusBadGateway && status != http.StatusServiceUnavailable && !e.there
}

// after is how long the answer asks to wait; 0 if it does not.
func after(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	if d, ok := retry.ParseRetryAfter(h.Get("Retry-After"), now); ok {
		return d
	}
	if seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		return duration(seconds, time.Second)
	}
	return 0
}

// duration is n units, if that is a sensible wait.
func duration(n float64, unit time.Duration) time.Duration {
	if math.IsNaN(n) || n <= 0 || n > math.MaxInt32 {
		return 0
	}
	return time.Duration(n * float64(unit))
}

func describe(status int, e envelope) string {
	said := ""
	if e.message != "" {
		said = ": " + shorten(e.message)
	}
	switch {
	case status >= 300 && status < 400:
		return fmt.Sprintf("the answer was %d, a redirect: none is followed, base_url must name where it leads", status)
	case e.there:
		return fmt.Sprintf("the provider has answered %d%s", status, said)
	default:
		return fmt.Sprintf("the answer was %d, and not in the form of a provider", status)
	}
}

// shorten makes one line of a text, and not a long one.
func shorten(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if runes := []rune(text); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "…"
	}
	return text
}
