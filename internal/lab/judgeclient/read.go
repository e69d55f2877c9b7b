package judgeclient

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxBody bounds what is read of a request, inflated, in bytes.
const maxBody = 64 << 20

// Credential is one of the secrets that the lab hands out, by its name.
type Credential string

// The credentials.
const (
	ServerKey    Credential = "server key"
	BrowserToken Credential = "browser token"
	ProjectKey   Credential = "project key"
	CIToken      Credential = "CI/CD token" //nolint:gosec // it names one
	AccessToken  Credential = "access token"
	NewToken     Credential = "refreshed access token"
	Unknown      Credential = "no credential of the lab"
)

// Secrets are what the credentials look like on the wire. They open nothing.
var Secrets = map[Credential]string{
	ServerKey:    "aps_lab000000000000000000000000000000000000000000000000",
	BrowserToken: "apb_lab000000000000000000000000000000000000000000000000",
	ProjectKey:   "apk_lab000000000000000000000000000000000000000000000000",
	CIToken:      "apc_lab000000000000000000000000000000000000000000000000",
	AccessToken:  "apt_lab000000000000000000000000000000000000000000000001",
	NewToken:     "apt_lab000000000000000000000000000000000000000000000002",
}

// The refresh tokens: the one that the client begins with, and the ones that
// it gets for it.
const (
	firstRefresh = "apr_lab000000000000000000000000000000000000000000000001"
	laterRefresh = "apr_lab00000000000000000000000000000000000000000000002"
)

// readBody returns the body of a request without its Content-Encoding. Gzip is
// also recognised by how it begins, for clients that name it elsewhere.
func readBody(r *http.Request) ([]byte, error) {
	raw, err := bounded(r.Body)
	if err != nil {
		return nil, err
	}
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); {
	case encoding == "gzip", bytes.HasPrefix(raw, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("reading gzip: %w", err)
		}
		return bounded(z)
	case encoding == "zstd":
		z, err := zstd.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("reading zstd: %w", err)
		}
		defer z.Close()
		return bounded(z)
	case encoding != "" && encoding != "identity":
		return nil, fmt.Errorf("the lab does not know Content-Encoding %s", short(encoding))
	default:
		return raw, nil
	}
}

func bounded(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errors.New("the body is too large for the lab")
	}
	return body, err
}

// describe fills in what a request is about.
func describe(p *Params, r *http.Request, body []byte) *Request {
	out := &Request{
		Method: r.Method, Path: r.URL.Path, Keys: r.Header.Values(p.API.KeyHeader),
		Credential: credentialOf(r, body), Body: hash(body),
	}
	if strings.HasSuffix(r.URL.Path, "/auth/refresh") {
		out.Refresh = true
		return out
	}
	switch {
	case p.Profile == Session:
		out.Items = []Item{{Fact: hash([]byte(r.Method), []byte(r.URL.RequestURI()), body), Name: r.Method + " " + short(r.URL.Path)}}
	case slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method):
	default:
		p.facts(out, body)
	}
	return out
}

// facts reads the items of a request that changes something.
func (p *Params) facts(r *Request, body []byte) {
	var err error
	switch p.Profile {
	case Events:
		if len(p.API.Paths) == 0 || slices.ContainsFunc(p.API.Paths, func(end string) bool { return strings.HasSuffix(r.Path, end) }) {
			r.Items, err = p.API.items(body)
		}
	case Replay:
		if strings.HasSuffix(r.Path, "/v1/replay") {
			r.Items, err = chunk(body)
		}
	case Deploy:
		r.Items = []Item{p.unit(r, body, "ts")}
	case Keyed, Mutation, Session:
		r.Items = []Item{p.unit(r, body)}
	}
	if err != nil {
		r.Problem = err.Error()
	}
}

// unit is the work that a request asks for; members that are left out do not
// make it another.
func (p *Params) unit(r *Request, body []byte, leftOut ...string) Item {
	item := Item{Name: r.Method + " " + short(r.Path)}
	if len(r.Keys) > 0 {
		item.ID = r.Keys[0]
	}
	content := body
	if unit, err := point(body, p.API.UnitPointer); err == nil && p.API.UnitPointer != "" {
		content = unit
	} else if m, ok := object(body); ok && len(leftOut) > 0 {
		content = without(m, leftOut...)
	}
	if m, ok := object(body); ok && p.Profile == Deploy {
		item.TS = plain(m["ts"])
	}
	item.Fact = hash([]byte(r.Method), []byte(r.Path), content)
	return item
}

// chunk reads one chunk of a recording: its identity is session and number,
// the fact are the events.
func chunk(body []byte) ([]Item, error) {
	m, ok := object(body)
	if !ok {
		return nil, errors.New("the body is not an object")
	}
	number := plain(m["chunk"])
	return []Item{{ID: text(m["session_id"]) + "/" + number, Fact: hash(m["events"]), Name: "chunk " + short(number)}}, nil
}

// credentialOf names the secret that a request carries, wherever its API has
// it: header, query or body.
func credentialOf(r *http.Request, body []byte) Credential {
	user, _, _ := r.BasicAuth()
	given := []string{strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), user, r.URL.Query().Get("key")}
	for name, secret := range Secrets {
		if slices.Contains(given, secret) || bytes.Contains(body, []byte(secret)) {
			return name
		}
	}
	return Unknown
}

// hash tells parts apart; 16 hex digits.
func hash(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part)) //nolint:errcheck // a hash takes everything
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
