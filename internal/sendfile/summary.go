package sendfile

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
)

// maxExamples is how many rejected items a summary names for each reason.
const maxExamples = 3

// Summary counts what became of the items. Read = Sent + rejected before
// sending + those still unsent when the run ended early.
type Summary struct {
	// Read counts the lines read as items.
	Read int `json:"read"`
	// Sent counts the items the server gave a verdict on.
	Sent int `json:"sent"`
	// Accepted and Duplicates are as the server counts them: Duplicates are
	// part of Accepted.
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
	// OwnDuplicates are the duplicates in requests that were made more than
	// once: the first attempt may have stored the items and its answer been
	// lost.
	OwnDuplicates int `json:"duplicates_after_retry"`
	// Rejected counts the items that were not accepted, by the server or
	// before sending; Reasons says why.
	Rejected int      `json:"rejected"`
	Reasons  []Reason `json:"reasons"`
	// Requests counts all requests made, Retries those of them that repeated
	// another.
	Requests int           `json:"requests"`
	Retries  int           `json:"retries"`
	Elapsed  time.Duration `json:"-"`
	// Seconds is Elapsed in seconds.
	Seconds float64 `json:"elapsed_seconds"`
}

// Reason is one cause of rejections.
type Reason struct {
	Code  api.RejectCode `json:"code"`
	Count int            `json:"count"`
	// Examples are the first of them.
	Examples []Rejected `json:"examples"`
}

// reject counts one rejected item.
func (s *Summary) reject(r Rejected) {
	s.Rejected++
	for i := range s.Reasons {
		if s.Reasons[i].Code == r.Code {
			s.Reasons[i].add(r)
			return
		}
	}
	s.Reasons = append(s.Reasons, Reason{Code: r.Code})
	s.Reasons[len(s.Reasons)-1].add(r)
}

func (r *Reason) add(x Rejected) {
	r.Count++
	if len(r.Examples) < maxExamples {
		r.Examples = append(r.Examples, x)
	}
}

// WriteText writes the summary for a person to read.
func (s *Summary) WriteText(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "sent %d, accepted %d, duplicates %d, rejected %d\n", s.Sent, s.Accepted, s.Duplicates, s.Rejected)
	if s.OwnDuplicates > 0 {
		fmt.Fprintf(&text, "  %d of the duplicates were in requests sent again, so this run may have stored them\n", s.OwnDuplicates)
	}
	for _, reason := range s.Reasons {
		fmt.Fprintf(&text, "  %s: %d\n", reason.Code, reason.Count)
		for _, x := range reason.Examples {
			fmt.Fprintf(&text, "    %s:%d: %s\n", x.Source, x.Line, x.Message)
		}
	}
	fmt.Fprintf(&text, "%d requests, %d retries, %s\n", s.Requests, s.Retries, s.Elapsed.Round(time.Millisecond))
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}
