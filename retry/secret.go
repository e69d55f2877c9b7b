package retry

import (
	"net/http"
	"strings"
)

// hushedError is one whose text quoted a credential.
type hushedError struct {
	err  error
	text string
}

func (e *hushedError) Error() string { return e.text }

func (e *hushedError) Unwrap() error { return e.err }

// hush hides the credential of a request in the text of an error: what answers
// may send back what it was sent, and net/http quotes an answer that is not
// HTTP.
func hush(err error, request *http.Request) error {
	header := request.Header.Get("Authorization")
	_, credential, _ := strings.Cut(header, " ")
	if credential == "" {
		credential = header
	}
	text := err.Error()
	if credential == "" || !strings.Contains(text, credential) {
		return err
	}
	return &hushedError{err, strings.ReplaceAll(text, credential, "[credential]")}
}
