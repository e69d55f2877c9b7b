package actionpulsetest_test //nolint:testableexamples // TestExample runs what it shows

import (
	"context"
	"testing"

	"github.com/actionpulse/actionpulse/sdk/actionpulse"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/actionpulsetest"
)

// pay is the code under test: an order is paid once, however often it is tried.
func pay(ctx context.Context, client *actionpulse.Client, order string) error {
	_, err := client.Customers.Charge(ctx, "ada", actionpulse.Move{CreditType: "main", Amount: "5"}, actionpulse.WithKey(order+":pay"))
	return err
}

// testPay is the test: the answer to the first attempt is lost, after the work was
// done.
func testPay(t *testing.T) {
	server := actionpulsetest.NewServer(t)
	server.Give("ada", "main", "100")
	server.Script(actionpulsetest.LoseAnswer().On("POST /v1/customers/{external_user_id}/charge"))

	client, err := actionpulse.New(server.URL, server.ProjectKey, actionpulse.WithHTTPClient(server.Client()))
	if err != nil {
		t.Fatal(err)
	}
	if err := pay(t.Context(), client, "order-42"); err != nil {
		t.Error(err)
	}
	if n := server.Attempts("order-42:pay"); n != 2 {
		t.Errorf("the charge was sent %d times with its key, want 2", n)
	}
	if balance := server.Balance("ada", "main"); balance.Available != "95" {
		t.Errorf("%s is left, want 95", balance.Available)
	}
}

// How code is tested that must not charge twice.
func Example() {
	_ = testing.InternalTest{Name: "TestPay", F: testPay}
}
