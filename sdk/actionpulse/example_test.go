package actionpulse_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// A customer pays, and the order is charged once, however often this runs.
func Example() {
	ctx := context.Background()
	client, err := actionpulse.New("http://127.0.0.1:8080", os.Getenv("ACTIONPULSE_PROJECT_KEY"))
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
}

// What an error says decides what is done about it.
func ExampleError() {
	ctx := context.Background()
	client, err := actionpulse.New("http://127.0.0.1:8080", os.Getenv("ACTIONPULSE_PROJECT_KEY"))
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
		fmt.Println("ask for money; there are only", balance.Available)
	case refusal.Code == api.CodeIdempotencyConflict:
		conflict, _ := refusal.Conflict()
		fmt.Println("a defect: the key names", conflict.Unit.Kind, conflict.Unit.ID, "already; different:", conflict.Differs)
	case refusal.Applied == actionpulse.AppliedUnknown:
		fmt.Println("try the same call with the same key later:", refusal.IdempotencyKey)
	default:
		log.Fatal(err)
	}
}

// A job that is run again asks for the same work.
func ExampleKeyFromRiver() {
	jobID := int64(42) // job.ID in the worker
	fmt.Println(actionpulse.KeyFromRiver(jobID, "charge"))
	// Output: river:42:charge
}

// Lists are read page by page, as far as they are wanted.
func ExampleMovements_All() {
	client, err := actionpulse.New("http://127.0.0.1:8080", os.Getenv("ACTIONPULSE_PROJECT_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	wanted := actionpulse.ListMovements{MovementFilter: actionpulse.MovementFilter{Customer: "ada", Kind: "charge"}}
	for movement, err := range client.Movements.All(context.Background(), wanted) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(movement.CreatedAt, movement.Amount)
	}
}

// A flow runs once for its key; a failure is the answer for ever.
func ExampleExecutions_Execute() {
	ctx := context.Background()
	client, err := actionpulse.New("http://127.0.0.1:8080", os.Getenv("ACTIONPULSE_PROJECT_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	done, err := client.Executions.Execute(ctx, actionpulse.Execute{
		Flow: "summaries", Customer: "ada", Input: map[string]any{"text": "…"},
	}, actionpulse.WithKey("order-42:summary"))
	if failure, ok := errors.AsType[*actionpulse.ExecutionError](err); ok {
		fmt.Println("failed; a new attempt needs a new key:", failure.ID, failure.Code)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(done.Output), done.Charged)
}

// A user's session goes on after a restart of the program.
func ExampleNewApp() {
	ctx := context.Background()
	app, err := actionpulse.NewApp("http://127.0.0.1:8080", actionpulse.OnTokens(func(tokens api.Tokens) {
		// Keep them where a password would be kept.
	}))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := app.Login(ctx, api.Login{Email: "ada@example.com", Password: os.Getenv("PASSWORD")}); err != nil {
		log.Fatal(err)
	}
	for project, err := range app.Projects.All(ctx, actionpulse.Page{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(project.ID, project.Name)
	}
}
