package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
)

// maxMarkerAnswer bounds what is read of an answer, in bytes.
const maxMarkerAnswer = 1 << 20

// markerClient makes deploy markers with a CI/CD token.
type markerClient struct {
	http     *http.Client
	endpoint string
	token    string
}

// marked is what the server answered.
type marked struct {
	// text is the marker as it came, marker what is read of it.
	text   json.RawMessage
	marker api.Marker
	// replayed says that an earlier request made it.
	replayed bool
	status   int
	// refusal is what the envelope of a refusal says; zero if there is none.
	refusal api.ErrorBody
}

// mark makes the marker, or finds it there, however often it takes to ask.
func (c *markerClient) mark(ctx context.Context, d *markerDraft, p retry.Policy) (marked, error) {
	return retry.Do(ctx, p, func(ctx context.Context) (marked, retry.Outcome) { return c.once(ctx, d) })
}

// once makes the request once. An answer that is cut short, or a success that
// holds no marker, is no answer.
func (c *markerClient) once(ctx context.Context, d *markerDraft) (m marked, o retry.Outcome) {
	o.Kind = retry.Keyed
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(d.body))
	if err != nil {
		o.Err = err
		return m, o
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + c.token, "Content-Type": "application/json",
		"Idempotency-Key": d.key, "User-Agent": "actionpulse-deploy-marker",
	} {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		o.Err = err
		return m, o
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxMarkerAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		o.Err = fmt.Errorf("reading the answer: %w", err)
		return m, o
	}
	o.Status, m.status = response.StatusCode, response.StatusCode
	o.RetryAfter, o.ShouldRetry = response.Header.Get("Retry-After"), response.Header.Get("X-Should-Retry")
	if !o.Succeeded() {
		m.refusal = refusalOf(content)
		o.Code = string(m.refusal.Code)
		return m, o
	}
	m.text, m.replayed = content, response.Header.Get("Idempotency-Replayed") == "true"
	if err := json.Unmarshal(content, &m.marker); err != nil || m.marker.ID == "" {
		o.Err = errors.New("the answer holds no marker")
	}
	return m, o
}

// refusalOf reads the envelope; zero if the answer is in another form, and so a
// proxy's.
func refusalOf(content []byte) api.ErrorBody {
	var envelope api.Error
	if json.Unmarshal(content, &envelope) != nil {
		return api.ErrorBody{}
	}
	return envelope.Error
}

// failed explains an answer that ended the command. It never holds the token,
// whoever wrote the answer.
func (c *markerClient) failed(d *markerDraft, m *marked, ended error) error {
	code, r := exitOf(ended), m.refusal
	if r.Code == "" || code == exitGaveUp || code == exitInterrupted {
		return &exitError{code, fmt.Errorf("%w; run the same step again: the deploy is not marked twice", ended)}
	}
	if m.status == http.StatusConflict && len(r.Details.Differs) > 0 {
		return &exitError{code, errors.New(d.conflict(r.Details.Differs))}
	}
	text := fmt.Sprintf("the server refused the marker: %s: %s", r.Code, oneLine(strings.ReplaceAll(r.Message, c.token, "[token]")))
	switch r.Code {
	case api.CodeNotFound:
		text += "; is --project the project of the token?"
	case api.CodeUnauthenticated, api.CodeForbidden:
		text += "; it takes a CI/CD token (apc_…) of the project"
	}
	return &exitError{code, errors.New(text)}
}

// conflict explains that the key names a marker made from another body: what
// that means depends on what differs.
func (d *markerDraft) conflict(differs []string) string {
	text := fmt.Sprintf("conflict: the key %s has marked another deploy already, or another attempt of this one: %s not the same now. Nothing was made. ",
		d.key, agree(differs))
	has := func(name string) bool { return slices.Contains(differs, name) }
	switch {
	case d.keyGiven && (has("commit") || has("url") || has("version")):
		text += "If this is another deploy, --key is a constant: put the build's id and the environment into it, " +
			"or leave --key out where the CI/CD system is known. If it is another attempt, take the value from the build's state: it must not be made anew"
	case has("commit"):
		text += "If one run deploys several things to one environment, tell them apart by --name. " +
			"If the numbers of runs have started again, as in a job that was made anew, give --key"
	case has("version"):
		text += "If one run deploys several things to one environment, tell them apart by --name. " +
			"If --version is made in the step, from a date or a counter, take it from the build's state: another attempt must send the same"
	case has("ts"):
		text += "--ts has changed between two attempts: take it from the build's state, or give --ts none"
	default:
		text += "What another attempt changes does not belong into a marker: leave it out"
	}
	return text
}

// agree names what differs, as the subject of a sentence.
func agree(differs []string) string {
	names := strings.Join(differs, " and ")
	if len(differs) > 1 {
		names = strings.Join(differs[:len(differs)-1], ", ") + " and " + differs[len(differs)-1]
	}
	names = oneLine(names)
	if len(differs) == 1 && !strings.HasSuffix(names, "metadata") {
		return names + " is"
	}
	return names + " are"
}
