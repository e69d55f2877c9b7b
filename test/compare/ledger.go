package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/storage/ledger"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// books is the product's own ledger, in a store beside the database.
type books struct {
	db      *sqldb.DB
	project string
}

// openBooks makes a store with one project.
func openBooks(ctx context.Context, o sqldb.Options) (*books, error) {
	db, err := sqldb.Create(ctx, o, [16]byte{1})
	if err != nil {
		return nil, err
	}
	const project = "00000000-0000-7000-8000-000000000001"
	err = db.Write(ctx, func(q *sqldb.Queries) error {
		return errors.Join(
			q.CreateOrganization(ctx, sqldb.CreateOrganizationParams{ID: project, Name: "compare"}),
			q.CreateProject(ctx, sqldb.CreateProjectParams{ID: project, Number: 1, OrganizationID: project, Name: "compare"}))
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &books{db: db, project: project}, nil
}

func (b *books) service() *credit.Service {
	return credit.NewService(credit.Params{
		Store: ledger.New(b.db), Workers: 4, KeepAnswers: time.Hour, Guard: func() error { return nil },
		Tally: idempotency.NewTally(b.db.Keys().AddCounts), Clock: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
}

// move moves credits of an account.
func (b *books) move(ctx context.Context, s *credit.Service, kind credit.Kind, key string, body []byte) (credit.Moved, error) {
	var c command
	if err := json.Unmarshal(body, &c); err != nil {
		return credit.Moved{}, err
	}
	return s.Move(ctx, credit.MoveParams{
		ProjectID: b.project, Customer: strconv.FormatInt(c.Account, 10), Kind: kind, Key: key, Body: body,
		Decode: func() (credit.Move, error) {
			return credit.Move{
				CreditType: "main", Amount: credit.Amount(c.Amount), Grant: credit.Grant{Priority: credit.DefaultPriority},
			}, nil
		},
		Render: func(*credit.Movement, credit.Balance) ([]byte, error) {
			_, text := answerOf(nil)
			return text, nil
		},
	})
}

// fund gives accounts a balance.
func (b *books) fund(ctx context.Context, from, to, amount int64) error {
	s := b.service()
	defer s.Close()
	var all sync.WaitGroup
	errs := make([]error, to-from)
	for i := range errs {
		all.Go(func() {
			body := fmt.Appendf(nil, `{"account":%d,"amount":%d}`, from+int64(i), amount)
			_, errs[i] = b.move(ctx, s, credit.Topup, fmt.Sprintf("fund-%d", from+int64(i)), body)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// entries counts the charges of an account.
func (b *books) entries(ctx context.Context, account int64) (n int, err error) {
	err = b.db.Reader().QueryRowContext(ctx, `SELECT COUNT(*) FROM movements m JOIN customers c ON c.id = m.customer_id
WHERE c.external_id = $1 AND m.kind = 'charge'`, strconv.FormatInt(account, 10)).Scan(&n)
	return n, err
}

// serveBooks starts a server before the product's ledger.
func serveBooks(db *database) (string, func(), error) {
	s := db.books.service()
	handler := func(*database) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { db.books.serve(w, r, s) }), nil
	}
	address, stop, err := overHTTP(handler)(db)
	return address, func() {
		stop()
		s.Close()
	}, err
}

func (b *books) serve(w http.ResponseWriter, r *http.Request, s *credit.Service) {
	key, refused := policy.ParseKey(r.Header)
	if refused != nil {
		idempotency.WriteProblem(w, r, refused)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	moved, err := b.move(r.Context(), s, credit.Charge, key, body)
	if conflict, ok := errors.AsType[*idempotency.Error](err); ok {
		idempotency.WriteProblem(w, r, conflict)
		return
	}
	if err != nil {
		if fault.CodeOf(err) == api.CodeInsufficientCredits {
			err = errInsufficient
		}
		status, text := answerOf(err)
		say(w, status, text)
		return
	}
	if moved.Replayed {
		w.Header().Set(idempotency.Replayed, "true")
	}
	say(w, moved.Answer.Status, moved.Answer.Body)
}
