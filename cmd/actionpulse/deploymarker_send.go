package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// markerAgent is the program's name in User-Agent.
const markerAgent = "actionpulse-deploy-marker"

// mark makes the marker, or finds it there, however often it takes to ask. Its
// error carries the exit code and never holds the token, whoever wrote the
// answer.
func (c *deployMarkerCommand) mark(ctx context.Context, d *markerDraft, token string, p retry.Policy) (*actionpulse.DeployMarker, error) {
	p.MaxAttempts = c.MaxAttempts
	client, err := actionpulse.NewDeployMarkers(c.URL, token, c.Project, actionpulse.WithRetry(p), actionpulse.WithUserAgent(markerAgent))
	if err != nil {
		return nil, &exitError{exitUsage, errors.New(bare(err))}
	}
	m, err := client.Create(ctx, d.content, actionpulse.WithKey(d.key))
	if err == nil && m.ID == "" {
		err = errors.New("the answer holds no marker")
	}
	if err != nil {
		code, text := d.failed(err)
		return nil, &exitError{code, errors.New(strings.ReplaceAll(text, token, "[token]"))}
	}
	return m, nil
}

// failed explains what ended the command, and with which exit code.
func (d *markerDraft) failed(ended error) (code int, text string) {
	const again = "; run the same step again: the deploy is not marked twice"
	e, ok := errors.AsType[*actionpulse.Error](ended)
	switch {
	case errors.Is(ended, context.Canceled):
		return exitInterrupted, bare(ended) + again
	case !ok:
		return exitFailure, bare(ended) + again
	case e.Retryable || e.Status >= http.StatusBadRequest && retry.Decide(retry.Outcome{Kind: retry.Keyed, Status: e.Status, Code: string(e.Code)}, time.Time{}).Retry:
		return exitGaveUp, fmt.Sprintf("gave up: %s", bare(e)) + again
	case e.Status == http.StatusConflict && len(e.Details.Differs) > 0:
		return exitFailure, d.conflict(e.Details.Differs)
	}
	text = fmt.Sprintf("the server refused the marker: %s: %s", e.Code, oneLine(e.Message))
	switch e.Code {
	case api.CodeNotFound:
		text += "; is --project the project of the token?"
	case api.CodeUnauthenticated, api.CodeForbidden:
		text += "; it takes a CI/CD token (apc_…) of the project"
	case "":
		text = bare(e) + again
	}
	return exitFailure, text
}

// bare is an error of the client without the name of its package, which is the
// program's name too.
func bare(err error) string { return oneLine(strings.TrimPrefix(err.Error(), "actionpulse: ")) }

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
	last := len(differs) - 1
	if last == 0 {
		return oneLine(differs[0]) + " is"
	}
	return oneLine(strings.Join(differs[:last], ", ")+" and "+differs[last]) + " are"
}
