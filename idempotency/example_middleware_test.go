package idempotency_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/idempotency"
)

// The leased form: a handler that calls another service is run once for each
// key, and its answer is kept for a day.
func ExampleMiddleware() {
	_, keys, done := openDatabase(context.Background())
	defer done()

	policy := idempotency.IETF(24 * time.Hour)
	policy.Namespace = "emails"
	policy.Key.Quoted = false // order-42:email instead of "order-42:email"
	policy.Takes = idempotency.OnSuccess

	once, err := idempotency.Middleware(idempotency.MiddlewareParams{
		Policy: policy,
		Store:  keys,
		// Whoever has been authenticated, not what the client claims to be.
		Scope: func(r *http.Request) (string, error) { return "user/" + r.Header.Get("Authorization"), nil },
	})
	if err != nil {
		log.Panic(err)
	}

	sent := 0
	emails := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, ok := idempotency.LeaseFrom(r.Context())
		if ok && lease.Epoch() > 1 {
			fmt.Println("an attempt before this one has died: ask the mail service about", lease.Key())
		}
		sent++ // here the mail service is called, with a key made from lease.Key()
		respond(w, http.StatusAccepted, fmt.Sprintf("email %d", sent))
	}))

	post(emails, "order-42:email", `{"to": "ada"}`)
	post(emails, "order-42:email", `{"to": "ada"}`)
	post(emails, "order-43:email", `{"to": "ada"}`)
	// Output:
	// 202 email 1
	// 202 email 1 (replayed)
	// 202 email 2
}

// A profile of draft-ietf-httpapi-idempotency-key-header.
func ExampleIETF() {
	_, keys, done := openDatabase(context.Background())
	defer done()
	once, err := idempotency.Middleware(idempotency.MiddlewareParams{
		Policy: idempotency.IETF(24 * time.Hour),
		Store:  keys,
		Scope:  func(r *http.Request) (string, error) { return r.Header.Get("Authorization"), nil },
	})
	if err != nil {
		log.Panic(err)
	}
	h := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the mail service is down", http.StatusBadGateway)
	}))
	post(h, `"8e03978e"`, `{}`)
	post(h, `"8e03978e"`, `{}`)
	post(h, `"8e03978e"`, `{"to": "ada"}`)
	post(h, `8e03978e`, `{}`)
	// Output:
	// 502 the mail service is down
	// 502 the mail service is down (replayed)
	// 422 {"title":"Unprocessable Entity","status":422,"detail":"Idempotency-Key is already used","code":"idempotency_key_reused","differs":["body"]}
	// 400 {"title":"Bad Request","status":400,"detail":"Idempotency-Key must be one quoted string, like \"8e03978e-40d5-43e8-bc93-6894a57f9324\"","code":"idempotency_key_malformed"}
}

// A repeat is answered with the resource as it is now. Naming it takes the key,
// whatever the answer.
func ExampleLease_Made() {
	_, keys, done := openDatabase(context.Background())
	defer done()
	status := map[string]string{}
	once, err := idempotency.Middleware(idempotency.MiddlewareParams{
		Policy: idempotency.Execution(),
		Store:  keys,
		Scope:  func(r *http.Request) (string, error) { return r.Header.Get("Authorization"), nil },
		Current: func(w http.ResponseWriter, _ *http.Request, result idempotency.Result) {
			id := result.Record.Resource.ID
			respond(w, http.StatusOK, id+" is "+status[id])
		},
	})
	if err != nil {
		log.Panic(err)
	}
	h := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := idempotency.LeaseFrom(r.Context())
		made, resumed := lease.Resource() // what an owner before has made
		if !resumed {
			made = idempotency.Resource{Kind: "export", ID: "export-1"}
			status[made.ID] = "running"
			if err := lease.Made(r.Context(), made); err != nil {
				return // another owner has taken over
			}
		}
		respond(w, http.StatusAccepted, made.ID+" is "+status[made.ID])
	}))

	post(h, "monthly-report:2026-05", `{"month": "2026-05"}`)
	status["export-1"] = "finished"
	post(h, "monthly-report:2026-05", `{"month": "2026-05"}`)
	// Output:
	// 202 export-1 is running
	// 200 export-1 is finished (replayed)
}

// A policy of your own is a changed one. Validate it once, at the start.
func ExamplePolicy() {
	policy := idempotency.IETF(0) // answers and keys are kept for ever
	policy.Namespace = "invoices"
	policy.Key = idempotency.KeyRule{Required: true, MinLength: 4, MaxLength: 100}
	policy.Compare = idempotency.NormalJSON(
		idempotency.Field{Name: "currency", Default: `"EUR"`},
		idempotency.Field{Name: "total", Kind: idempotency.Decimal},
		idempotency.Field{Name: "due", Kind: idempotency.Timestamp},
	)
	policy.Takes = idempotency.OnSuccess
	policy.Refusals.Conflict.Status = http.StatusConflict
	if err := policy.Validate(); err != nil {
		log.Panic(err)
	}

	first := idempotency.Request{Policy: &policy, Body: []byte(`{"total": "10.50", "due": "2026-06-01T00:00:00Z", "currency": "EUR"}`)}
	again := idempotency.Request{Policy: &policy, Body: []byte(`{"due": "2026-06-01T02:00:00+02:00", "total": 10.5}`)}
	other := idempotency.Request{Policy: &policy, Body: []byte(`{"due": "2026-06-01T00:00:00Z", "total": 10.51}`)}
	before := policy.Compare.Print(&first)
	fmt.Println(before.Differs(policy.Compare.Print(&again)))
	fmt.Println(before.Differs(policy.Compare.Print(&other)))
	// Output:
	// []
	// [total]
}
