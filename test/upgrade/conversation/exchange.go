// Package conversation talks to a server over HTTP in every way that leaves
// something behind, remembers what was said, and says all of it again later: to
// the next release on the same data folder, or to a restored copy. It judges
// the answers to the repeats by what the contract promises, and never looks at
// a store itself.
package conversation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Credentials are what init prints, by the names that it prints them by.
type Credentials struct {
	ProjectID    string `json:"project_id"`
	AccessToken  string `json:"access_token"`
	BrowserToken string `json:"browser_token"`
	ServerKey    string `json:"server_key"`
	LegacyKey    string `json:"legacy_key"`
	ProjectKey   string `json:"project_key"`
	CIToken      string `json:"ci_token"`
	Owner        struct {
		Email    string `json:"email"`
		Password string `json:"password"`
	} `json:"owner"`
}

// As names a credential, without its secret.
type As string

// The credentials that a request may carry.
const (
	AsBrowser As = "browser"
	AsServer  As = "server"
	AsLegacy  As = "legacy"
	AsProject As = "project"
	AsCI      As = "ci"
	AsOwner   As = "owner"
)

// Repeat says what the answer to a repeat of a request must be.
type Repeat string

// What a repeat hears.
const (
	// Never: the contract promises nothing about a repeat, so there is none.
	Never Repeat = ""
	// Duplicates: the same verdict on each item, and each that was accepted is
	// a duplicate now.
	Duplicates Repeat = "duplicates"
	// Chunk: what was taken in is a duplicate now.
	Chunk Repeat = "chunk"
	// Bytes: the first status and body, byte for byte, said to be replayed.
	Bytes Repeat = "bytes"
	// Replayed: the same object with status 200, said to be replayed.
	Replayed Repeat = "replayed"
	// Execution: 200 with the execution that the key names, and its end.
	Execution Repeat = "execution"
	// Refused: the same status and code.
	Refused Repeat = "refused"
	// Same: the same object, whatever has become of balances since.
	Same Repeat = "same"
	// Read: the same answer; members may have been added.
	Read Repeat = "read"
)

// Exchange is a request and its answer.
type Exchange struct {
	As     As     `json:"as"`
	Method string `json:"method"`
	Path   string `json:"path"`
	// Key is the Idempotency-Key, empty for none.
	Key    string `json:"key,omitempty"`
	Body   string `json:"body,omitempty"`
	Status int    `json:"status"`
	Answer string `json:"answer"`
	Repeat Repeat `json:"repeat,omitempty"`
}

func (e Exchange) String() string { return fmt.Sprintf("%s %s %.120s", e.Method, e.Path, e.Body) }

// Client sends requests to one server.
type Client struct {
	URL         string
	Credentials Credentials
	HTTP        *http.Client
}

// secret returns what a request carries.
func (c *Client) secret(as As) string {
	return map[As]string{
		AsBrowser: c.Credentials.BrowserToken, AsServer: c.Credentials.ServerKey, AsLegacy: c.Credentials.LegacyKey,
		AsProject: c.Credentials.ProjectKey, AsCI: c.Credentials.CIToken, AsOwner: c.Credentials.AccessToken,
	}[as]
}

// Login takes a new access token of the owner: the one that init printed ends
// after a day.
func (c *Client) Login(ctx context.Context) error {
	body, err := json.Marshal(map[string]string{"email": c.Credentials.Owner.Email, "password": c.Credentials.Owner.Password})
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	said, _, err := c.Send(ctx, Exchange{Method: http.MethodPost, Path: "/api/v1/auth/login", Body: string(body)})
	if err != nil || said.Status != http.StatusOK {
		return fmt.Errorf("log in: %w: %s", errors.Join(err, errStatus), said.Answer)
	}
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(said.Answer), &tokens); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	c.Credentials.AccessToken = tokens.AccessToken
	return nil
}

var errStatus = errors.New("the answer has another status than expected")

// Send sends the request of an exchange and returns it with the answer that it
// got now, and whether that was said to be a replay.
func (c *Client) Send(ctx context.Context, e Exchange) (said Exchange, replayed bool, err error) {
	request, err := http.NewRequestWithContext(ctx, e.Method, c.URL+strings.ReplaceAll(e.Path, "{id}", c.Credentials.ProjectID), strings.NewReader(e.Body))
	if err != nil {
		return e, false, fmt.Errorf("%s: %w", e, err)
	}
	if secret := c.secret(e.As); secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	if e.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if e.Key != "" {
		request.Header.Set("Idempotency-Key", e.Key)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return e, false, fmt.Errorf("%s: %w", e, err)
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return e, false, fmt.Errorf("%s: %w", e, err)
	}
	e.Status, e.Answer = response.StatusCode, string(bytes.TrimRight(answer, "\n"))
	return e, response.Header.Get("Idempotency-Replayed") == "true", nil
}
