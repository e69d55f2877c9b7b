package actionpulse

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Client speaks to /v1 with one key of a project: a project key for customers,
// credits, flows and executions, an ingest key for Intake. It is safe for use
// by several goroutines, and is meant to be made once: after a failure its
// requests go one at a time until one succeeds.
type Client struct {
	Customers       *Customers
	Holds           *Holds
	Movements       *Movements
	CreditTypes     *CreditTypes
	Flows           *Flows
	Executions      *Executions
	Operations      *Operations
	IdempotencyKeys *IdempotencyKeys
	Intake          *Intake
	Server          *Server
}

// New makes a client of a server, such as https://pulse.example, that sends
// key. It refuses a server that is no http or https URL, and a key that is
// empty or cannot be sent.
func New(server, key string, options ...Option) (*Client, error) {
	l, err := newKeyLink(server, key, options)
	if err != nil {
		return nil, err
	}
	return &Client{
		Customers: &Customers{l}, Holds: &Holds{l}, Movements: &Movements{l}, CreditTypes: &CreditTypes{l},
		Flows: &Flows{l}, Executions: &Executions{l}, Operations: &Operations{l}, IdempotencyKeys: &IdempotencyKeys{l},
		Intake: &Intake{l}, Server: &Server{l},
	}, nil
}

// newKeyLink is a link that authorises every request by one key.
func newKeyLink(server, key string, options []Option) (*link, error) {
	if err := usable(key); err != nil {
		return nil, err
	}
	return newLink(linkParams{server: server, options: options, token: func() string { return key }})
}

// serverURL reads where a server is. Its text is not repeated in an error: it
// may hold a password.
func serverURL(server string) (string, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil:
		return "", errors.New("actionpulse: the server's address is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("actionpulse: the server's address must be an http or https URL with a host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", errors.New("actionpulse: the server's address must have no user, query and fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// usable refuses a credential that a header cannot carry. It is not repeated
// in the error.
func usable(credential string) error {
	if credential == "" {
		return errors.New("actionpulse: the key is empty")
	}
	for i := range len(credential) {
		if c := credential[i]; c <= ' ' || c == 0x7f {
			return fmt.Errorf("actionpulse: the key cannot be sent: byte %d is a blank or a control character", i)
		}
	}
	return nil
}
