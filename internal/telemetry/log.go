// Package telemetry owns how the process speaks about itself: the logger and
// the counters that Prometheus reads. Other packages are handed what they
// need; there is no global logger, registry or counter. It never decides
// anything and never writes to a response.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/mattn/go-isatty"
)

// Log formats.
const (
	// FormatAuto is text on a terminal and JSON otherwise.
	FormatAuto = "auto"
	FormatText = "text"
	FormatJSON = "json"
)

// LogParams says how to log.
type LogParams struct {
	Writer io.Writer
	// Format is one of the formats above; empty is [FormatAuto].
	Format string
	// Level is the least level that is written.
	Level slog.Level
}

// NewLogger returns a logger that writes to p.Writer, or an error if the
// format is unknown.
func NewLogger(p LogParams) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: p.Level}
	format := p.Format
	if format == "" || format == FormatAuto {
		format = FormatJSON
		if isTerminal(p.Writer) {
			format = FormatText
		}
	}
	switch format {
	case FormatText:
		return slog.New(slog.NewTextHandler(p.Writer, options)), nil
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(p.Writer, options)), nil
	default:
		return nil, fmt.Errorf("log format %q is none of auto, text, json", p.Format)
	}
}

// isTerminal reports whether w is a file that is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(f.Fd())
}
