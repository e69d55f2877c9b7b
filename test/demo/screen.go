package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// screen is what there is to see.
type screen struct {
	out io.Writer
	// line is where progress goes; nil for nowhere.
	line  io.Writer
	began time.Time
	// broken is why nothing can be shown any more.
	broken error
}

func newScreen(out, line io.Writer) *screen { return &screen{out: out, line: line, began: time.Now()} }

func (s *screen) print(w io.Writer, format string, args ...any) {
	if s.broken == nil {
		_, s.broken = fmt.Fprintf(w, format, args...)
	}
}

// begin says what is going to happen.
func (s *screen) begin(d *demo) {
	s.print(s.out, `
ActionPulse demo

  %s events of a real shop go to a server, and its %s orders are paid in credits; every
  second order has a flow write a letter of thanks, which costs credits too. On the way a
  proxy loses, doubles, delays and breaks a third of all requests, and the server is killed
  twice (SIGKILL) and started again. At the end everything is sent once more. The clients
  are ordinary code with the Go SDK: they repeat what had no answer, with the same ids and
  keys. Nothing may be lost, and nothing may be done twice.

  server http://%s, data folder %s, seed %d

`, thousands(int64(len(d.shop.events))), thousands(int64(d.shop.orders)), d.server.address, d.server.data, d.seed)
}

// say writes a line with the time since the beginning.
func (s *screen) say(format string, args ...any) {
	s.clear()
	s.print(s.out, "  %5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// progress shows how far a sender is.
func (s *screen) progress(of *sender) {
	if s.line == nil {
		return
	}
	s.clear()
	s.print(s.line, "  %5.1f s  events %s of %s, orders %s of %s", time.Since(s.began).Seconds(),
		thousands(of.events.Load()), thousands(int64(len(of.shop.events))), thousands(of.orders.Load()), thousands(int64(of.shop.orders)))
}

// clear removes the line of progress.
func (s *screen) clear() {
	if s.line != nil {
		s.print(s.line, "\r\x1b[K")
	}
}

// end shows the table and the verdict.
func (s *screen) end(v *verdict, c faultproxy.Counts, faults []error) error {
	s.clear()
	s.print(s.out, "\n")
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	s.print(table, "\tsent\tattempts\tduplicates suppressed\tstored\texpected\tcredits moved\texpected\t\n")
	for _, l := range v.lines() {
		moved, expected := "", ""
		if l.money {
			moved, expected = signed(l.moved), signed(l.expectedMoved)
		}
		s.print(table, "%-9s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", l.name, thousands(l.sent), thousands(l.attempts), thousands(l.suppressed),
			thousands(l.stored), thousands(l.expected), moved, expected)
	}
	if s.broken == nil {
		s.broken = table.Flush()
	}
	s.print(s.out, `
  sent       counts both times; attempts are what the clients sent for it, and the network doubled some on the way
  by name    %d of %d names of events have the right count; %s %s of %s
  balances   %d of %d customers have exactly what their orders leave
  network    %s requests: %s lost, %s answers lost or cut short, %s doubled, %s answered with an error, %s met no server
  kills      %d; the server's own check (actionpulse verify) %s

`, v.rightNames(), len(v.shop.names), purchase, thousands(v.found.names[purchase]), thousands(v.shop.names[purchase]),
		v.found.right, len(v.shop.customers),
		thousands(c.Requests), thousands(c.DropRequest), thousands(c.DropAnswer+c.Truncate), thousands(c.Duplicate),
		thousands(c.ServerError+c.Unavailable+c.TooMany), thousands(c.Unreachable),
		v.killed, checked(v.verified))
	if len(faults) == 0 {
		s.print(s.out, "PASS in %.0f s: nothing lost, nothing twice\n", time.Since(s.began).Seconds())
	} else {
		s.print(s.out, "FAIL in %.0f s\n", time.Since(s.began).Seconds())
	}
	return s.broken
}

// rightNames is how many names of events have the count that they should have.
func (v *verdict) rightNames() (n int) {
	for name, want := range v.shop.names {
		if v.found.names[name] == want {
			n++
		}
	}
	return n
}

func checked(err error) string {
	if err != nil {
		return "has found something wrong"
	}
	return "finds stores and ledger in agreement"
}

// thousands writes a number with a comma before each three digits.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// signed writes an amount with its sign.
func signed(a credit.Amount) string {
	if text := a.String(); strings.HasPrefix(text, "-") {
		return text
	}
	return "+" + a.String()
}
