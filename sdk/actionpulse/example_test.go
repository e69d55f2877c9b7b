package actionpulse_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// pulse stands for a server in the examples: it plays answers one after
// another.
func pulse(answers ...http.HandlerFunc) string {
	return httptest.NewServer(&script{answers: answers}).URL
}

// A customer pays, and the order is charged once, however often this runs.
func Example() {
	ctx := context.Background()
	server := pulse(says(200, `{"balance":{"available":"100"}}`), says(200, `{"balance":{"available":"99.7"}}`))
	client, err := actionpulse.New(server, "apk_your_project_key")
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Customers.TopUp(ctx, "ada", actionpulse.TopUp{CreditType: "main", Amount: "100"},
		actionpulse.WithKey("invoice-881"))
	if err != nil {
		log.Fatal(err)
	}
	moved, err := client.Customers.Charge(ctx, "ada", actionpulse.Move{CreditType: "main", Amount: "0.3"},
		actionpulse.WithKey("order-42:pay"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(moved.Balance.Available, moved.Replayed)
	// Output: 99.7 false
}

// What an error says decides what is done about it.
func ExampleError() {
	ctx := context.Background()
	server := pulse(refuses(402, "insufficient_credits", `,"key":"free","balance":{"available":"2"}`))
	client, err := actionpulse.New(server, "apk_your_project_key")
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Customers.Charge(ctx, "ada", actionpulse.Move{CreditType: "main", Amount: "5"}, actionpulse.WithKey("order-43:pay"))
	refusal, ok := errors.AsType[*actionpulse.Error](err)
	switch {
	case err == nil:
		fmt.Println("charged")
	case !ok:
		log.Fatal(err)
	case refusal.Code == api.CodeInsufficientCredits:
		balance, _ := refusal.Balance()
		fmt.Println("ask for money: there are only", balance.Available)
	case refusal.Code == api.CodeIdempotencyConflict:
		conflict, _ := refusal.Conflict()
		fmt.Println("a defect: the key names", conflict.Unit.Kind, conflict.Unit.ID, "already; different:", conflict.Differs)
	case refusal.Applied == actionpulse.AppliedUnknown:
		fmt.Println("make the same call with the same key later:", refusal.IdempotencyKey)
	default:
		log.Fatal(err)
	}
	// Output: ask for money: there are only 2
}

// A job that is run again asks for the same work.
func ExampleKeyFromRiver() {
	jobID := int64(42) // job.ID in the worker
	fmt.Println(actionpulse.KeyFromRiver(jobID, "charge"))
	// Output: river:42:charge
}

// Lists are read page by page, as far as they are wanted.
func ExampleMovements_All() {
	server := pulse(says(200, `{"items":[{"amount":"0.3"},{"amount":"2"}],"next_cursor":"MTI"}`))
	client, err := actionpulse.New(server, "apk_your_project_key")
	if err != nil {
		log.Fatal(err)
	}
	wanted := actionpulse.ListMovements{MovementFilter: actionpulse.MovementFilter{Customer: "ada", Kind: "charge"}}
	for movement, err := range client.Movements.All(context.Background(), wanted) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(movement.Amount)
		if movement.Amount == "2" {
			break // the next page is not asked for
		}
	}
	// Output:
	// 0.3
	// 2
}

// A flow runs once for its key. A failure is its answer for ever: to run again,
// take a new key.
func ExampleExecutions_Execute() {
	ctx := context.Background()
	server := pulse(says(200, succeeded), says(200, failed))
	client, err := actionpulse.New(server, "apk_your_project_key")
	if err != nil {
		log.Fatal(err)
	}
	for _, order := range []string{"order-42", "order-43"} {
		done, err := client.Executions.Execute(ctx, actionpulse.Execute{
			Flow: "summaries", Customer: "ada", Input: map[string]any{"text": "…"},
		}, actionpulse.WithKey(order+":summary"))
		failure, ok := errors.AsType[*actionpulse.ExecutionError](err)
		switch {
		case ok:
			fmt.Println(failure.ID, "has failed:", failure.Code)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(string(done.Output), "for", done.Charged)
		}
	}
	// Output:
	// {"a":1} for 2
	// x-1 has failed: model_error
}

// A user's session goes on after a restart of the program.
func ExampleNewApp() {
	ctx := context.Background()
	server := pulse(says(200, `{"access_token":"apt_1","refresh_token":"r1"}`), says(200, `{"items":[{"name":"shop"}],"next_cursor":null}`))
	app, err := actionpulse.NewApp(server, actionpulse.OnTokens(func(tokens api.Tokens) {
		fmt.Println("keep them like a password:", tokens.AccessToken != "", tokens.RefreshToken != "")
	}))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := app.Login(ctx, api.Login{Email: "ada@example.com", Password: "…"}); err != nil {
		log.Fatal(err)
	}
	for project, err := range app.Projects.All(ctx, actionpulse.Page{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(project.Name)
	}
	// Output:
	// keep them like a password: true true
	// shop
}
