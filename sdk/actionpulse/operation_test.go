package actionpulse_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

// Ids that have the form of one.
const (
	one = "01980000-0000-7000-8000-000000000001"
	two = "01980000-0000-7000-8000-000000000002"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// clients are one of each kind, of one server.
type clients struct {
	*actionpulse.Client
	app    *actionpulse.App
	deploy *actionpulse.DeployMarkers
}

func newClients(t *testing.T, server string, options ...actionpulse.Option) *clients {
	t.Helper()
	c, err := actionpulse.New(server, "apk_key", options...)
	if err != nil {
		t.Fatal(err)
	}
	app, err := actionpulse.NewApp(server, append(options, actionpulse.WithTokens(api.Tokens{AccessToken: "apt_a", RefreshToken: "r"}))...)
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := actionpulse.NewDeployMarkers(server, "apc_token", one, options...)
	if err != nil {
		t.Fatal(err)
	}
	return &clients{c, app, deploy}
}

// method calls one method, with as much as it can send.
type method func(context.Context, *clients) error

// of is the error of a method that answers with something.
func of[T any](_ T, err error) error { return err }

// drain reads an iteration to its end.
func drain[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// methods are all methods that send a request, by the operation that they ask
// for.
var methods = []map[string][]method{creditMethods, flowMethods, accountMethods, projectMethods, alertMethods, serverMethods}

var page = actionpulse.Page{Limit: 7, Cursor: "YQ"}

var metadata = map[string]any{"order": 42}

var raw = map[string]json.RawMessage{"order": json.RawMessage("42")}

// TestEveryOperationHasAMethod: each operation of the API document has one,
// which sends a request that the document allows, and none sends another.
func TestEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	var covered []string
	r := record(t)
	for _, group := range methods {
		for operation, calls := range group {
			covered = append(covered, operation)
			for _, call := range calls {
				r.asked, r.faults = nil, nil
				if err := call(t.Context(), newClients(t, r.URL)); err != nil {
					t.Errorf("%s: %v", operation, err)
				}
				if !slices.Equal(r.asked, []string{operation}) {
					t.Errorf("%s: it has asked for %v", operation, r.asked)
				}
				for _, fault := range r.faults {
					t.Errorf("%s: %s", operation, fault)
				}
			}
		}
	}
	slices.Sort(covered)
	if want := documented(t); !slices.Equal(covered, want) {
		t.Errorf("methods for %v\nwant %v", covered, want)
	}
}

var serverMethods = map[string][]method{
	"getHealth":     {func(ctx context.Context, c *clients) error { return of(c.Server.Health(ctx)) }},
	"getReadiness":  {func(ctx context.Context, c *clients) error { return of(c.app.Server.Ready(ctx)) }},
	"getOpenAPI":    {func(ctx context.Context, c *clients) error { return of(c.Server.OpenAPI(ctx)) }},
	"getFlowSchema": {func(ctx context.Context, c *clients) error { return of(c.Server.FlowSchema(ctx)) }},
	"findIdempotencyKey": {func(ctx context.Context, c *clients) error {
		return of(c.IdempotencyKeys.Get(ctx, "order-42:email"))
	}},
	"track": {func(ctx context.Context, c *clients) error {
		return of(c.Intake.Track(ctx, api.TrackRequest{Events: []api.TrackItem{{EventID: new(one), Event: "e", UserID: "u"}}}))
	}},
	"identify": {func(ctx context.Context, c *clients) error {
		return c.Intake.Identify(ctx, api.IdentifyRequest{AnonID: "a", UserID: "u", Traits: metadata})
	}},
	"replay": {func(ctx context.Context, c *clients) error {
		return of(c.Intake.SendReplay(ctx, api.ReplayRequest{SessionID: "s", Chunk: 3, UserID: "u", Events: []json.RawMessage{[]byte(`{}`)}}))
	}},
	"alias": {func(ctx context.Context, c *clients) error {
		return c.Intake.Alias(ctx, api.AliasRequest{AnonID: "a", UserID: "u"})
	}},
}

var creditMethods = map[string][]method{
	"listCustomers": {
		func(ctx context.Context, c *clients) error { return of(c.Customers.List(ctx, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.Customers.All(ctx, page)) },
	},
	"getCustomer": {func(ctx context.Context, c *clients) error { return of(c.Customers.Get(ctx, "ada")) }},
	"ensureCustomer": {func(ctx context.Context, c *clients) error {
		return of(c.Customers.Ensure(ctx, "ada", api.NewCustomer{Metadata: raw}))
	}},
	"changeCustomer": {func(ctx context.Context, c *clients) error {
		return of(c.Customers.Change(ctx, "ada", api.CustomerChange{Metadata: raw}))
	}},
	"topupCustomer": {func(ctx context.Context, c *clients) error {
		return of(c.Customers.TopUp(ctx, "ada", actionpulse.TopUp{
			CreditType: "main", Amount: "10.50", Reason: "paid", Metadata: metadata, ExpiresAt: noon, Priority: new(0),
		}))
	}},
	"chargeCustomer": {func(ctx context.Context, c *clients) error {
		return of(c.Customers.Charge(ctx, "ada", actionpulse.Move{CreditType: "main", Amount: "1", Reason: "use", Metadata: metadata}))
	}},
	"adjustCustomer": {func(ctx context.Context, c *clients) error {
		return of(c.Customers.Adjust(ctx, "ada", actionpulse.Move{CreditType: "main", Amount: "-1"}))
	}},
	"getBalances": {func(ctx context.Context, c *clients) error { return of(c.Customers.Balances(ctx, "ada", noon)) }},
	"listGrants": {
		func(ctx context.Context, c *clients) error { return of(c.Customers.Grants(ctx, "ada", page)) },
		func(ctx context.Context, c *clients) error { return drain(c.Customers.AllGrants(ctx, "ada", page)) },
	},
	"listHolds": {
		func(ctx context.Context, c *clients) error {
			return of(c.Holds.List(ctx, "ada", actionpulse.ListHolds{Page: page, State: "open"}))
		},
		func(ctx context.Context, c *clients) error {
			return drain(c.Holds.All(ctx, "ada", actionpulse.ListHolds{}))
		},
	},
	"getHold": {func(ctx context.Context, c *clients) error { return of(c.Holds.Get(ctx, "ada", "h")) }},
	"placeHold": {func(ctx context.Context, c *clients) error {
		return of(c.Holds.Place(ctx, "ada", "h", actionpulse.NewHold{
			CreditType: "main", Amount: "1", ExpiresAt: noon, Reason: "cart", Metadata: metadata,
		}))
	}},
	"captureHold": {
		func(ctx context.Context, c *clients) error {
			return of(c.Holds.Capture(ctx, "ada", "h", actionpulse.Capture{}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.Holds.Capture(ctx, "ada", "h", actionpulse.Capture{Amount: "0", Reason: "r", Metadata: metadata}))
		},
	},
	"releaseHold": {func(ctx context.Context, c *clients) error { return of(c.Holds.Release(ctx, "ada", "h")) }},
	"listMovements": {
		func(ctx context.Context, c *clients) error {
			return of(c.Movements.List(ctx, actionpulse.ListMovements{Page: page, MovementFilter: filter}))
		},
		func(ctx context.Context, c *clients) error {
			return drain(c.Movements.All(ctx, actionpulse.ListMovements{}))
		},
	},
	"exportMovements": {
		func(ctx context.Context, c *clients) error { return drain(c.Movements.Export(ctx, filter)) },
		func(ctx context.Context, c *clients) error {
			csv, err := c.Movements.ExportCSV(ctx, filter)
			if err != nil {
				return err
			}
			return errors.Join(of(io.ReadAll(csv)), csv.Close())
		},
	},
	"getMovement": {func(ctx context.Context, c *clients) error { return of(c.Movements.Get(ctx, one)) }},
	"reverseMovement": {
		func(ctx context.Context, c *clients) error {
			return of(c.Movements.Reverse(ctx, one, actionpulse.NewReversal{}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.Movements.Reverse(ctx, one, actionpulse.NewReversal{Amount: "1", Reason: "r"}))
		},
	},
	"listCreditTypes": {
		func(ctx context.Context, c *clients) error { return of(c.CreditTypes.List(ctx, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.CreditTypes.All(ctx, page)) },
	},
	"declareCreditType": {func(ctx context.Context, c *clients) error {
		return of(c.CreditTypes.Declare(ctx, "main", api.NewCreditType{AllowNegative: true}))
	}},
}

var filter = actionpulse.MovementFilter{Customer: "ada", CreditType: "main", Kind: "topup", From: noon, To: noon.Add(time.Hour)}

var flowMethods = map[string][]method{
	"listFlows": {
		func(ctx context.Context, c *clients) error { return of(c.Flows.List(ctx, page)) },
		func(ctx context.Context, c *clients) error { return drain(c.Flows.All(ctx, page)) },
	},
	"getFlow": {func(ctx context.Context, c *clients) error { return of(c.Flows.Get(ctx, "f", 2)) }},
	"publishFlow": {
		func(ctx context.Context, c *clients) error {
			return of(c.Flows.Publish(ctx, "f", api.FlowDefinition{"output": json.RawMessage("1")}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.Flows.PublishYAML(ctx, "f", []byte("output: 1\n")))
		},
	},
	"listFlowVersions": {
		func(ctx context.Context, c *clients) error { return of(c.Flows.Versions(ctx, "f", page)) },
		func(ctx context.Context, c *clients) error { return drain(c.Flows.AllVersions(ctx, "f", page)) },
	},
	"diffFlow":      {func(ctx context.Context, c *clients) error { return of(c.Flows.Diff(ctx, "f", 1, 2)) }},
	"pinFlow":       {func(ctx context.Context, c *clients) error { return of(c.Flows.Pin(ctx, "f", 2)) }},
	"unpinFlow":     {func(ctx context.Context, c *clients) error { return of(c.Flows.Unpin(ctx, "f")) }},
	"archiveFlow":   {func(ctx context.Context, c *clients) error { return of(c.Flows.Archive(ctx, "f")) }},
	"unarchiveFlow": {func(ctx context.Context, c *clients) error { return of(c.Flows.Unarchive(ctx, "f")) }},
	"execute": {
		func(ctx context.Context, c *clients) error {
			return of(c.Executions.Execute(ctx, actionpulse.Execute{Flow: "f"}))
		},
		func(ctx context.Context, c *clients) error {
			return of(c.Executions.Start(ctx, actionpulse.Execute{
				Flow: "f", Version: 2, Customer: "ada", Input: metadata, Context: metadata,
			}))
		},
	},
	"listExecutions": {
		func(ctx context.Context, c *clients) error {
			return of(c.Executions.List(ctx, actionpulse.ListExecutions{
				Page: page, IdempotencyKey: "k", Flow: "f", Customer: "ada", Status: actionpulse.StatusFailed,
			}))
		},
		func(ctx context.Context, c *clients) error {
			return drain(c.Executions.All(ctx, actionpulse.ListExecutions{}))
		},
	},
	"getExecution": {
		func(ctx context.Context, c *clients) error { return of(c.Executions.Get(ctx, one)) },
		func(ctx context.Context, c *clients) error { return of(c.Executions.Wait(ctx, one)) },
	},
	"getTrace":        {func(ctx context.Context, c *clients) error { return of(c.Executions.Trace(ctx, one)) }},
	"followExecution": {func(ctx context.Context, c *clients) error { return drain(c.Executions.Follow(ctx, one)) }},
	"cancelExecution": {func(ctx context.Context, c *clients) error { return of(c.Executions.Cancel(ctx, one)) }},
	"listOperations": {
		func(ctx context.Context, c *clients) error {
			return of(c.Operations.List(ctx, actionpulse.ListOperations{Page: page, ExecutionID: one}))
		},
		func(ctx context.Context, c *clients) error {
			return drain(c.Operations.All(ctx, actionpulse.ListOperations{}))
		},
	},
	"listCosts": {func(ctx context.Context, c *clients) error {
		return of(c.Operations.Costs(ctx, actionpulse.CostsOf{From: noon, To: noon.Add(time.Hour), By: []string{"flow", "day"}}))
	}},
}
