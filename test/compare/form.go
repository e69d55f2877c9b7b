package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	fiberkeys "github.com/gofiber/fiber/v2/middleware/idempotency"

	"github.com/actionpulse/actionpulse/idempotency"
)

// command is the body of a request.
type command struct {
	Account int64 `json:"account"`
	Amount  int64 `json:"amount"`
}

// form is one way to keep repeats from doing the work again.
type form struct {
	name string
	// bare says that it keeps nothing.
	bare bool
	// races says that the race report counts its wrong answers; books that it
	// is the product's own ledger.
	races, books bool
	// serve starts a server with no memory of its own but the database.
	serve func(db *database) (address string, stop func(), err error)
}

func forms() []form {
	return []form{
		{name: "no key", bare: true, serve: overHTTP(bareHandler)},
		{name: "this engine, atomic", serve: overHTTP(atomicHandler)},
		{name: "this engine, leased middleware", serve: overHTTP(leasedHandler)},
		{name: "the ledger of credits", races: true, books: true, serve: serveBooks},
		{name: "textbook: read, work, insert the key last", races: true, serve: overHTTP(textbookHandler)},
		{name: "fiber v2 idempotency middleware, in memory", serve: overFiber},
	}
}

func overHTTP(handler func(*database) (http.Handler, error)) func(*database) (string, func(), error) {
	return func(db *database) (string, func(), error) {
		h, err := handler(db)
		if err != nil {
			return "", nil, err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		go server.Serve(listener)                                       //nolint:errcheck // it ends with stop
		return listener.Addr().String(), func() { server.Close() }, nil //nolint:errcheck // the run is over
	}
}

// answerOf is what is said after the work, by every form.
func answerOf(err error) (int, []byte) {
	switch {
	case err == nil:
		return http.StatusOK, []byte(`{"ok":true}`)
	case errors.Is(err, errInsufficient):
		return http.StatusPaymentRequired, []byte(`{"error":"insufficient"}`)
	default:
		return http.StatusInternalServerError, []byte(`{"error":"` + err.Error() + `"}`)
	}
}

func say(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client counts what it gets
}

// work is the handler without a key.
func work(ctx context.Context, db *database, body []byte, key string) error {
	var c command
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	return db.inTx(ctx, func(tx *sql.Tx) error { return charge(ctx, tx, c, key) })
}

func bareHandler(db *database) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = work(r.Context(), db, body, "")
		}
		status, text := answerOf(err)
		say(w, status, text)
	}), nil
}

// atomicHandler claims the key as the first row of the work's transaction.
func atomicHandler(db *database) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, refused := policy.ParseKey(r.Header)
		if refused != nil {
			idempotency.WriteProblem(w, r, refused)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		request := idempotency.Request{Policy: &policy, Scope: "compare", Key: key, Body: body}
		result, fresh, err := db.keys.Judge(r.Context(), request)
		if err == nil && fresh {
			result, err = db.keys.Run(r.Context(), request, func(tx *sql.Tx) (idempotency.Answer, error) {
				var c command
				if err := json.Unmarshal(body, &c); err != nil {
					return idempotency.Answer{}, err
				}
				status, text := answerOf(nil)
				return idempotency.Answer{Status: status, Body: text}, charge(r.Context(), tx, c, key)
			})
		}
		if refused, ok := errors.AsType[*idempotency.Error](err); ok {
			idempotency.WriteProblem(w, r, refused)
			return
		}
		if err != nil {
			status, text := answerOf(err)
			say(w, status, text)
			return
		}
		if result.Replayed {
			w.Header().Set(idempotency.Replayed, "true")
		}
		say(w, result.Answer.Status, result.Answer.Body)
	}), nil
}

// leasedHandler puts the middleware before the bare handler.
func leasedHandler(db *database) (http.Handler, error) {
	p := policy
	p.Running.Wait = 30 * time.Second
	p.Retention = idempotency.Retention{}
	wrap, err := idempotency.Middleware(idempotency.MiddlewareParams{
		Policy: p, Store: db.keys, Scope: func(*http.Request) (string, error) { return "compare", nil },
	})
	if err != nil {
		return nil, err
	}
	bare, err := bareHandler(db)
	return wrap(bare), err
}

// textbookHandler is what one finds in books: look the key up; if it is new,
// work, and insert it in the work's transaction, last.
func textbookHandler(db *database) (http.Handler, error) {
	find := func(ctx context.Context, key string) (body, answer string, err error) {
		err = db.read.QueryRowContext(ctx, `SELECT body, answer FROM textbook_keys WHERE work_key = $1`, key).Scan(&body, &answer)
		return body, answer, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(idempotency.Header)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		before, answer, err := find(r.Context(), key)
		if errors.Is(err, sql.ErrNoRows) {
			_, text := answerOf(nil)
			err = db.inTx(r.Context(), func(tx *sql.Tx) error {
				var c command
				if err := json.Unmarshal(body, &c); err != nil {
					return err
				}
				if err := charge(r.Context(), tx, c, key); err != nil {
					return err
				}
				_, err := tx.ExecContext(r.Context(), `INSERT INTO textbook_keys (work_key, body, answer) VALUES ($1, $2, $3)`, key, string(body), string(text))
				return err
			})
			if err == nil || errors.Is(err, errInsufficient) {
				status, text := answerOf(err)
				say(w, status, text)
				return
			}
			before, answer, err = find(r.Context(), key) // somebody else was first
		}
		switch {
		case err != nil:
			status, text := answerOf(err)
			say(w, status, text)
		case before != string(body):
			say(w, http.StatusConflict, []byte(`{}`))
		default:
			w.Header().Set(idempotency.Replayed, "true")
			say(w, http.StatusOK, []byte(answer))
		}
	}), nil
}

// overFiber is the framework's middleware with its default storage and lock.
func overFiber(db *database) (string, func(), error) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(fiberkeys.New(fiberkeys.Config{
		KeyHeader: idempotency.Header, KeyHeaderValidate: func(string) error { return nil }, Lifetime: time.Hour,
		Next: func(*fiber.Ctx) bool { return false },
	}))
	app.Post("/", func(c *fiber.Ctx) error {
		err := work(context.Background(), db, c.Body(), c.Get(idempotency.Header))
		status, text := answerOf(err)
		if err != nil { // as an error, so that it is not kept: only success takes a key
			return fiber.NewError(status, string(text))
		}
		c.Set("Content-Type", "application/json")
		return c.Status(status).Send(text)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go app.Listener(listener)                                       //nolint:errcheck // it ends with stop
	return listener.Addr().String(), func() { app.Shutdown() }, nil //nolint:errcheck // the run is over
}
