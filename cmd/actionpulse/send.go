package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // --timezone works where the system has no time zones
	"unicode"

	"github.com/mattn/go-isatty"

	"github.com/actionpulse/actionpulse/internal/sendfile"
	"github.com/actionpulse/actionpulse/retry"
)

// requestTimeout bounds one request of send; it is longer than a server under
// load takes.
const requestTimeout = time.Minute

// sendCommand sends files to intake.
type sendCommand struct {
	Files []string `arg:"" name:"file" help:"CSV with a header, or one JSON item a line; gzip is recognised. - reads standard input."`

	URL string `name:"url" env:"ACTIONPULSE_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Address of the server. Default: http://127.0.0.1:8080."`
	Key string `name:"key" env:"ACTIONPULSE_KEY" placeholder:"KEY" help:"Ingest key: a server or legacy key, or a browser token. Better in the environment, where other users do not see it."`

	Event     string `name:"event" env:"-" placeholder:"COLUMN" help:"CSV column of the event's name. Default: event."`
	EventName string `name:"event-name" env:"-" placeholder:"NAME" help:"One name for all events, instead of a column."`
	User      string `name:"user" env:"-" placeholder:"COLUMN" help:"CSV column of the user id. Default: user_id, if there is one."`
	Anon      string `name:"anon" env:"-" placeholder:"COLUMN" help:"CSV column of the anonymous id. Default: anon_id, if there is one."`
	Session   string `name:"session" env:"-" placeholder:"COLUMN" help:"CSV column of the session id. Default: session_id, if there is one."`
	TS        string `name:"ts" env:"-" placeholder:"COLUMN" help:"CSV column of the time: RFC 3339, 2024-03-13 10:21:14, or milliseconds since 1970. Default: ts, if there is one."`
	ID        string `name:"id" env:"-" placeholder:"COLUMN" help:"CSV column of the event id, a UUID. Default: event_id, if there is one; else ids are derived from the content."`
	Timezone  string `name:"timezone" env:"-" default:"UTC" placeholder:"ZONE" help:"IANA time zone of times without an offset. Default: UTC."`
	Format    string `name:"format" env:"-" enum:"auto,csv,jsonl" default:"auto" help:"Form of the input: auto, csv or jsonl."`
	IDSeed    string `name:"id-seed" env:"-" placeholder:"TEXT" help:"Makes the derived ids others, to send the same lines as other events."`

	Historical  bool `name:"historical" env:"-" help:"Keep times of any age. Needs a server or legacy key."`
	BatchSize   int  `name:"batch-size" env:"-" default:"500" placeholder:"N" help:"Items in a request, 1 to 1000. Default: 500."`
	MaxAttempts int  `name:"max-attempts" env:"-" default:"10" placeholder:"N" help:"How often a request is made, within 15 minutes, before send gives up. Default: 10."`
	JSON        bool `name:"json" env:"-" help:"Print the summary as JSON."`
	Quiet       bool `name:"quiet" short:"q" env:"-" help:"Show no progress; rejected items and the summary are still printed."`
}

// Help is shown by send --help.
func (*sendCommand) Help() string {
	return `Sends each line of the files as an event. Sending a file again, or the rest
of it after ctrl-C, adds nothing: the ids are derived from the content, and
the server remembers them for 48 hours.

CSV columns that are not mapped become properties. Rejected items are listed
on standard error with their line and are not sent again; the summary goes to
standard output.

Exit codes: 0 all accepted, 1 failure, 2 wrong usage, 3 some items rejected,
4 gave up after repeated failures, 130 interrupted.`
}

// sendIO is where send reads and writes.
type sendIO struct {
	streams
	// terminal says that stderr shows a progress bar.
	terminal bool
}

// Run sends the files until they end or ctx is done; then the request in
// flight is finished first. The error carries its exit code.
func (c *sendCommand) Run(ctx context.Context, std streams) error {
	stderr, isFile := std.stderr.(*os.File)
	return c.run(ctx, sendIO{std, isFile && isatty.IsTerminal(stderr.Fd())})
}

func (c *sendCommand) run(ctx context.Context, std sendIO) error {
	endpoint, options, err := c.settings()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	input := newSendInput(c.Files, std.stdin)
	if err := input.check(options); err != nil {
		return &exitError{exitUsage, err}
	}
	progress := newSendProgress(std, input, c)
	sender := sendfile.NewSender(sendfile.SenderParams{
		URL: endpoint, Key: c.Key, UserAgent: "actionpulse-send",
		HTTP:       newSendClient(),
		Historical: c.Historical,
		BatchSize:  c.BatchSize,
		Retry:      retry.Policy{MaxAttempts: c.MaxAttempts},
		Now:        time.Now,
		OnRejected: progress.rejected, OnRetry: progress.retry, OnSent: progress.sent,
	})
	feedCtx, stopFeed := context.WithCancel(ctx)
	err = sender.Run(ctx, sendfile.Feed(feedCtx, input.sources, options))
	stopFeed()
	progress.finish()
	summary := sender.Summary()
	return c.end(std.stdout, summary, err)
}

// settings checks the flags. Messages never repeat the key, nor a URL that
// may hold a password.
func (c *sendCommand) settings() (endpoint string, o sendfile.Options, err error) {
	if c.Key == "" {
		return "", o, errors.New("no ingest key: set ACTIONPULSE_KEY or --key")
	}
	if !isWhole(c.Key) {
		return "", o, errors.New("the ingest key holds white space or control characters: was it copied whole?")
	}
	if c.BatchSize < 1 || c.BatchSize > sendfile.MaxBatch {
		return "", o, fmt.Errorf("--batch-size is 1 to %d", sendfile.MaxBatch)
	}
	if c.MaxAttempts < 1 {
		return "", o, errors.New("--max-attempts is at least 1")
	}
	if c.Event != "" && c.EventName != "" {
		return "", o, errors.New("--event and --event-name exclude each other")
	}
	location, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return "", o, fmt.Errorf("--timezone: %w", err)
	}
	endpoint, err = trackURL(c.URL)
	return endpoint, sendfile.Options{
		Format: sendfile.Format(c.Format),
		Seed:   c.IDSeed,
		Mapping: sendfile.Mapping{
			Event: c.Event, User: c.User, Anon: c.Anon, Session: c.Session, TS: c.TS, ID: c.ID,
			EventName: c.EventName, Location: location,
		},
	}, err
}

// isWhole reports whether a key holds no character that none has.
func isWhole(key string) bool {
	return !strings.ContainsFunc(key, unicode.IsControl) && strings.TrimSpace(key) == key
}

// trackURL returns the address of the track method of a server.
func trackURL(server string) (string, error) { return methodURL(server, "v1", "track") }

// methodURL returns the address of a method of a server. The parts of its path
// are escaped.
func methodURL(server string, path ...string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", errors.New("--url is not an address like https://events.example.com")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--url holds a user, a query or a fragment: give the server's address only")
	}
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	return u.JoinPath(path...).String(), nil
}

// newSendClient returns a client that follows no redirect: the key is for the
// server that was named, and for no other.
func newSendClient() *http.Client {
	return &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// end prints the summary and turns the end of a run into an exit code.
func (c *sendCommand) end(stdout io.Writer, s sendfile.Summary, ended error) error {
	result := sendExit(s, ended)
	if err := c.print(stdout, s, result); err != nil {
		return errors.Join(result, err)
	}
	return result
}

func (c *sendCommand) print(w io.Writer, s sendfile.Summary, result error) error {
	if !c.JSON {
		return s.WriteText(w)
	}
	out := struct {
		sendfile.Summary
		Complete bool   `json:"complete"`
		Error    string `json:"error,omitempty"`
	}{Summary: s, Complete: result == nil || exitCode(result) == exitRejected}
	if result != nil {
		out.Error = result.Error()
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// resume says how to go on after a run that ended early.
const resume = "run the same command again within 48 hours to go on: what was sent already is not stored twice"

func sendExit(s sendfile.Summary, ended error) error {
	gaveUp, isRetry := errors.AsType[*retry.Error](ended)
	_, isSetup := errors.AsType[*sendfile.SetupError](ended)
	switch {
	case ended == nil && s.Rejected > 0:
		return &exitError{exitRejected, fmt.Errorf("%d items were rejected", s.Rejected)}
	case ended == nil:
		return nil
	case errors.Is(ended, sendfile.ErrInterrupted):
		return &exitError{exitInterrupted, fmt.Errorf("%w; %s", sendfile.ErrInterrupted, resume)}
	case isRetry && gaveUp.Verdict.Retry:
		return &exitError{exitGaveUp, fmt.Errorf("%w; %s", ended, resume)}
	case isSetup:
		return &exitError{exitUsage, ended}
	default:
		return &exitError{exitFailure, ended}
	}
}
