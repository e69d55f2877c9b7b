package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// conversation is what was said to a target and what it answered, in a form in
// which two of them can be compared.
type conversation struct {
	*testing.T
	target
	said []exchange
	ids  map[string]string
}

// exchange is a request and its answer, without what may differ; code is that of a
// refusal.
type exchange struct{ asked, answered, code string }

// request is one request. Its credential is the project key if it has none.
type request struct {
	method, path, body string
	credential         string
	key                string
	header             http.Header
}

// noCredential sends none.
const noCredential = "none"

// answer is what came back.
type answer struct {
	c      *conversation
	asked  string
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// send sends a request, and notes the answer.
func (c *conversation) send(r request) *answer {
	c.Helper()
	a := c.quietly(r)
	code, _ := a.at("error.code").(string)
	c.said = append(c.said, exchange{a.asked, c.form(a), code})
	return a
}

// quietly sends a request without noting it.
func (c *conversation) quietly(r request) *answer {
	c.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	out, err := http.NewRequestWithContext(c.Context(), r.method, c.url+r.path, strings.NewReader(r.body))
	if err != nil {
		c.Fatal(err)
	}
	if r.header != nil {
		out.Header = r.header.Clone()
	}
	if r.credential == "" {
		r.credential = c.project()
	}
	if r.credential != noCredential {
		out.Header.Set("Authorization", "Bearer "+r.credential)
	}
	if r.key != "" {
		out.Header["Idempotency-Key"] = []string{r.key}
	}
	response, err := c.client.Do(out)
	if err != nil {
		c.Fatalf("%s: %s %s: %v", c.name, r.method, r.path, err)
	}
	raw, err := io.ReadAll(response.Body)
	if err == nil {
		err = response.Body.Close()
	}
	if err != nil {
		c.Fatal(err)
	}
	a := &answer{c: c, status: response.StatusCode, header: response.Header, raw: string(raw)}
	a.asked = fmt.Sprintf("%s %s key=%q %s", r.method, r.path, r.key, shorten(r.body))
	if len(raw) > 0 && json.Unmarshal(raw, &a.body) != nil {
		c.Fatalf("%s: %s: %d %s", c.name, a.asked, a.status, shorten(a.raw))
	}
	return a
}

func shorten(s string) string {
	if len(s) > 500 {
		return s[:500] + "…"
	}
	return s
}

// until asks again and again until something is so, and ends the test when that
// takes longer than it can.
func (c *conversation) until(what string, so func() bool) {
	c.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); !so(); <-again.C {
		if time.Now().After(end) {
			c.Fatalf("%s: in vain waited until %s", c.name, what)
		}
	}
}

func (c *conversation) get(path string) *answer {
	c.Helper()
	return c.send(request{method: http.MethodGet, path: path})
}

func (c *conversation) post(path, key, body string) *answer {
	c.Helper()
	return c.send(request{path: path, key: key, body: body})
}

func (c *conversation) put(path, body string) *answer {
	c.Helper()
	return c.send(request{method: http.MethodPut, path: path, body: body})
}

// track sends to /v1/track.
func (c *conversation) track(credential, body string) *answer {
	c.Helper()
	return c.send(request{path: "/v1/track", credential: credential, body: body})
}

// wants demands a status.
func (a *answer) wants(status int) *answer {
	a.c.Helper()
	if a.status != status {
		a.c.Fatalf("%s: %s: %d %s, want %d", a.c.name, a.asked, a.status, shorten(a.raw), status)
	}
	return a
}

// refuses demands a refusal.
func (a *answer) refuses(status int, code string) *answer {
	a.c.Helper()
	if got := a.at("error.code"); got != code {
		a.c.Fatalf("%s: %s: %d %s, want %d %s", a.c.name, a.asked, a.status, shorten(a.raw), status, code)
	}
	return a.wants(status)
}

// has demands a value at a path of the body, as JSON writes it.
func (a *answer) has(path, want string) *answer {
	a.c.Helper()
	got, err := json.Marshal(a.at(path))
	if err != nil || string(got) != want {
		a.c.Fatalf("%s: %s: %s is %s, want %s: %s", a.c.name, a.asked, path, got, want, shorten(a.raw))
	}
	return a
}

// replayed demands that the answer is, or is not, marked as one to a repeat.
func (a *answer) replayed(want bool) *answer {
	a.c.Helper()
	if got := a.header.Get("Idempotency-Replayed") == "true"; got != want {
		a.c.Fatalf("%s: %s: replayed is %t: %s", a.c.name, a.asked, got, shorten(a.raw))
	}
	return a
}

// at returns a value of the body by its path, a.b.0, and nil if there is none.
func (a *answer) at(path string) any {
	var value any = a.body
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// text is at for a text.
func (a *answer) text(path string) string {
	a.c.Helper()
	text, ok := a.at(path).(string)
	if !ok {
		a.c.Fatalf("%s: %s: there is no %s: %s", a.c.name, a.asked, path, shorten(a.raw))
	}
	return text
}

// compared are the headers in which two answers must be equal.
var compared = []string{
	"Content-Type", "Cache-Control", "X-Should-Retry", "Retry-After", "Idempotency-Replayed", "Allow", "Www-Authenticate",
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
	"Access-Control-Max-Age",
}

// form is an answer without what may differ.
func (c *conversation) form(a *answer) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "  %d", a.status)
	for _, name := range compared {
		if v := a.header.Values(name); v != nil {
			fmt.Fprintf(&b, "\n  %s: %q", name, v)
		}
	}
	if a.header.Get("X-Request-Id") == "" {
		b.WriteString("\n  there is no X-Request-Id")
	}
	if a.raw == "" {
		return b.String()
	}
	// The same value in both forms has the same spelling: members in order.
	text, err := json.MarshalIndent(c.normal("", a.body), "  ", " ")
	if err != nil {
		c.Fatal(err)
	}
	return b.String() + "\n  " + string(text)
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	secrets = regexp.MustCompile(`^ap[a-z]_\w+$`)
)

// presence is how far from now a time is taken for one that the server made.
const presence = time.Hour

// normal is a value without what may differ: name is the member that it is of.
func (c *conversation) normal(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, member := range sorted(v) {
			out[member] = c.normal(member, v[member])
			if member == "repeats" || member == "conflicts" { // they lag: see untilCounted
				out[member] = "<count>"
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = c.normal(name, v[i])
		}
		return out
	case string:
		return c.normalText(name, v)
	default:
		return v
	}
}

func (c *conversation) normalText(name, v string) string {
	switch {
	case name == "message" && v != "", name == "next_cursor", name == "request_id", secrets.MatchString(v):
		return "<" + name + ">"
	}
	if at, err := time.Parse("2006-01-02T15:04:05.000Z", v); err == nil && time.Since(at).Abs() < presence {
		return "<now>"
	}
	return uuids.ReplaceAllStringFunc(v, func(id string) string {
		if c.ids[id] == "" {
			c.ids[id] = fmt.Sprintf("<id %d>", len(c.ids)+1)
		}
		return c.ids[id]
	})
}
