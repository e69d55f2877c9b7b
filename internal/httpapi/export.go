package httpapi

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
)

var exportMovementsOperation = operation{
	id: "exportMovements", tag: tagCredits, summary: "Export movements, oldest first",
	description: "As many as there are, in one answer. If it fails on the way the connection is cut: an answer that is complete ends properly. " +
		"What is written after the request was received is not in it.",
	params: append(movementFilters(), textParam("format", "csv, with a line of names first, or jsonl: a movement on each line. csv if absent.")),
	replies: []reply{{
		status: http.StatusOK, doc: "The movements; as application/jsonl if that was asked for.", body: "", kind: "text/csv",
	}},
}

// exportMovements answers with all movements that are asked for. What can be
// refused is refused before the first byte.
func (s *service) exportMovements(x *exchange) (answer, error) {
	q, err := x.movementQuery()
	if err != nil {
		return answer{}, err
	}
	format, err := x.text("format")
	if err != nil {
		return answer{}, err
	}
	write, kind := writeCSV, "text/csv; charset=utf-8"
	switch format {
	case "", "csv":
	case "jsonl":
		write, kind = writeJSONL, "application/jsonl"
	default:
		return answer{}, fault.Field("format", "format is csv or jsonl")
	}
	next, err := s.Books.Export(x.r.Context(), q)
	if err != nil {
		return answer{}, err
	}
	first, err := next(x.r.Context())
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, contentType: kind, stream: func(w io.Writer) error {
		return exportPages(x, w, pages{first, next, write})
	}}, nil
}

// pages are the movements of an export and how they are written.
type pages struct {
	first []credit.Movement
	next  func(context.Context) ([]credit.Movement, error)
	write func(w io.Writer, page []credit.Movement, begins bool) error
}

// exportPages writes page after page. The client has some time for each.
func exportPages(x *exchange, w io.Writer, p pages) error {
	connection := http.NewResponseController(x.w)
	for page, begins := p.first, true; begins || len(page) > 0; begins = false {
		if err := connection.SetWriteDeadline(time.Now().Add(writeSlack)); err != nil {
			return err
		}
		if err := p.write(w, page, begins); err != nil {
			return clientGone(err)
		}
		var err error
		if page, err = p.next(x.r.Context()); err != nil {
			return err
		}
	}
	return nil
}

// exportColumns are the names of the columns, as in JSON.
var exportColumns = []string{
	"id", "kind", "customer", "credit_type", "amount", "delta", "balance_after", "created_at", "reason", "idempotency_key",
	"hold", "reversal_of", "expires_at", "priority", "metadata",
}

// writeCSV writes a page as CSV, as in RFC 4180 but for the ends of lines.
func writeCSV(w io.Writer, page []credit.Movement, begins bool) error {
	out := csv.NewWriter(w)
	if begins {
		if err := out.Write(exportColumns); err != nil {
			return err
		}
	}
	for i := range page {
		row, err := csvRow(&page[i])
		if err != nil {
			return err
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvRow(m *credit.Movement) ([]string, error) {
	v := m.Wire()
	priority, metadata := "", ""
	if v.Priority != nil {
		priority = strconv.Itoa(*v.Priority)
	}
	if v.Metadata != nil {
		text, err := marshal(v.Metadata)
		if err != nil {
			return nil, err
		}
		metadata = string(text[:len(text)-1])
	}
	return []string{
		v.ID, v.Kind, v.Customer, v.CreditType, v.Amount, v.Delta, v.BalanceAfter, v.CreatedAt, textOf(v.Reason), textOf(v.IdempotencyKey),
		textOf(v.Hold), textOf(v.ReversalOf), textOf(v.ExpiresAt), priority, metadata,
	}, nil
}

// writeJSONL writes a page with a movement on each line.
func writeJSONL(w io.Writer, page []credit.Movement, _ bool) error {
	for i := range page {
		line, err := marshal(page[i].Wire())
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}
