package credit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Customer is somebody whom a project keeps credits for.
type Customer struct {
	// Number orders the customers of a project by when they were made.
	Number int64
	// ID is the project's own name for the customer.
	ID string
	// Metadata is the members of a JSON object; nil for none.
	Metadata map[string]json.RawMessage
	// Balances are by credit type.
	Balances  map[string]Balance
	CreatedAt time.Time
}

// CustomerStore keeps customers and credit types.
type CustomerStore interface {
	// FindCustomer returns a customer and whether there is one.
	FindCustomer(ctx context.Context, projectID, customer string) (Customer, bool, error)
	// ListCustomers returns up to limit customers, the latest first, of those
	// made before a number; 0 is all of them.
	ListCustomers(ctx context.Context, projectID string, before int64, limit int) ([]Customer, error)
	// EnsureCustomer makes a customer that is not there. Metadata that is not
	// nil replaces what there is; it and SetMetadata refuse with
	// privacy_job_active while a privacy job about the customer is not finished.
	EnsureCustomer(ctx context.Context, p EnsureParams, now time.Time) (created bool, err error)
	// SetMetadata replaces a customer's metadata and says whether there is one.
	SetMetadata(ctx context.Context, p EnsureParams) (found bool, err error)
	// EnsureType makes a credit type that is not there, and returns the one that
	// is there then.
	EnsureType(ctx context.Context, projectID string, t Type) (now Type, created bool, err error)
	// ListTypes returns up to limit credit types, the oldest first, of those made
	// after a number.
	ListTypes(ctx context.Context, projectID string, after int64, limit int) ([]Type, error)
}

// EnsureParams says what is to be known of a customer.
type EnsureParams struct {
	ProjectID string
	Customer  string
	// Metadata is the members of a JSON object; nil where nothing is said.
	Metadata map[string]json.RawMessage
}

// CustomersParams configures [Customers]; every member must be set.
type CustomersParams struct {
	Store CustomerStore
	// Guard returns nil, or why nothing may be written now.
	Guard func() error
	Clock func() time.Time
}

// Customers manages customers and credit types.
type Customers struct{ params CustomersParams }

// NewCustomers returns a Customers.
func NewCustomers(p CustomersParams) *Customers { return &Customers{params: p} }

// Get returns a customer with the balances. Fault: customer_not_found.
func (c *Customers) Get(ctx context.Context, projectID, customer string) (Customer, error) {
	if ValidateCustomer(customer) != nil {
		return Customer{}, noCustomer()
	}
	found, ok, err := c.params.Store.FindCustomer(ctx, projectID, customer)
	if err != nil {
		return Customer{}, fmt.Errorf("find a customer: %w", err)
	}
	if !ok {
		return Customer{}, noCustomer()
	}
	return found, nil
}

// List returns up to limit customers, the latest first, of those made before a
// number; 0 is all of them.
func (c *Customers) List(ctx context.Context, projectID string, before int64, limit int) ([]Customer, error) {
	list, err := c.params.Store.ListCustomers(ctx, projectID, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list customers: %w", err)
	}
	return list, nil
}

// Ensure makes a customer that is not there, and says whether it has. Metadata
// that is not nil replaces what there is. Faults: invalid_request,
// privacy_job_active, unavailable.
func (c *Customers) Ensure(ctx context.Context, p EnsureParams) (Customer, bool, error) {
	if err := ValidateCustomer(p.Customer); err != nil {
		return Customer{}, false, err
	}
	if err := c.check(p); err != nil {
		return Customer{}, false, err
	}
	created, err := c.params.Store.EnsureCustomer(ctx, p, c.params.Clock())
	if err != nil {
		return Customer{}, false, fmt.Errorf("make a customer: %w", err)
	}
	customer, err := c.Get(ctx, p.ProjectID, p.Customer)
	return customer, created, err
}

// SetMetadata replaces a customer's metadata. Faults: customer_not_found,
// invalid_request, privacy_job_active, unavailable.
func (c *Customers) SetMetadata(ctx context.Context, p EnsureParams) (Customer, error) {
	if ValidateCustomer(p.Customer) != nil {
		return Customer{}, noCustomer()
	}
	if err := c.check(p); err != nil {
		return Customer{}, err
	}
	found, err := c.params.Store.SetMetadata(ctx, p)
	if err != nil {
		return Customer{}, fmt.Errorf("change a customer: %w", err)
	}
	if !found {
		return Customer{}, noCustomer()
	}
	return c.Get(ctx, p.ProjectID, p.Customer)
}

// check refuses metadata that is too large, and writing when it is not allowed.
func (c *Customers) check(p EnsureParams) error {
	if err := validateNote("", p.Metadata); err != nil {
		return err
	}
	return writable(c.params.Guard)
}

func noCustomer() error { return fault.New(api.CodeCustomerNotFound, "there is no such customer") }

// writable returns unavailable when the guard lets nothing be written.
func writable(guard func() error) error {
	if err := guard(); err != nil {
		return fault.Wrap(api.CodeUnavailable, err, "the server cannot write now").With("applied", false)
	}
	return nil
}
