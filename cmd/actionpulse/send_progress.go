package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/actionpulse/actionpulse/internal/sendfile"
	"github.com/actionpulse/actionpulse/retry"
)

// progressEvery is how often a line is written where there is no terminal.
const progressEvery = 5 * time.Second

// sendProgress shows how far send has come: a bar on a terminal, a line every
// few seconds elsewhere. Its methods are called one at a time.
type sendProgress struct {
	w     io.Writer
	input *sendInput
	// bar is nil where there is no terminal.
	bar         *progressbar.ProgressBar
	quiet       bool
	maxAttempts int
	last        time.Time
	// broken is set when nothing can be shown any more; that is no reason to
	// stop sending.
	broken error
}

func newSendProgress(std sendIO, in *sendInput, c *sendCommand) *sendProgress {
	p := &sendProgress{w: std.stderr, input: in, quiet: c.Quiet, maxAttempts: c.MaxAttempts, last: time.Now()}
	if !std.terminal || c.Quiet {
		return p
	}
	total := in.total
	if total == 0 {
		total = 1
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(std.stderr),
		progressbar.OptionSetDescription("sending"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	return p
}

// sent shows the counts after a request.
func (p *sendProgress) sent(s sendfile.Summary) {
	switch {
	case p.quiet:
	case p.bar != nil:
		p.bar.Describe(fmt.Sprintf("sent %d", s.Sent))
		read := p.input.read.Load()
		if p.input.total > 0 {
			// Reading is ahead of sending: the bar is full at the end only.
			read = min(read, p.input.total-1)
		}
		p.failed(p.bar.Set64(read))
	case time.Since(p.last) >= progressEvery:
		p.last = time.Now()
		p.line(fmt.Sprintf("sent %d, duplicates %d, rejected %d, retries %d", s.Sent, s.Duplicates, s.Rejected, s.Retries))
	}
}

// retry says why nothing moves for a while.
func (p *sendProgress) retry(r retry.Retry) {
	if p.quiet {
		return
	}
	what := fmt.Sprint(r.Outcome.Status)
	switch {
	case r.Outcome.Err != nil:
		what = r.Outcome.Err.Error()
	case r.Outcome.Code != "":
		what += " " + r.Outcome.Code
	}
	p.line(fmt.Sprintf("attempt %d of %d: %s (%s); again in %s",
		r.Attempt, p.maxAttempts, r.Verdict.Reason, what, r.Wait.Round(10*time.Millisecond)))
}

func (p *sendProgress) rejected(r sendfile.Rejected) { p.line("rejected " + r.String()) }

func (p *sendProgress) line(text string) {
	if p.broken != nil {
		return
	}
	if p.bar != nil {
		p.failed(p.bar.Clear())
	}
	_, err := fmt.Fprintln(p.w, text)
	p.failed(err)
}

func (p *sendProgress) finish() {
	if p.bar != nil && p.broken == nil {
		p.failed(p.bar.Clear())
		p.failed(p.bar.Close())
	}
}

func (p *sendProgress) failed(err error) { p.broken = errors.Join(p.broken, err) }
