package flow

import (
	"math/big"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/flow/step"
	"github.com/actionpulse/actionpulse/internal/model"
)

// Amount is an amount of credits.
type Amount = credit.Amount

const (
	defaultCreditType = "main"
	// unitPattern is of the name of a credit type: a text without control characters, and without
	// blanks at its ends.
	unitPattern = `^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]{0,62}[^\s\x00-\x1f\x7f])?$`
	// anyModel prices the models that have no price of their own.
	anyModel = "*"
	// perTokens is how many tokens a price is for.
	perTokens = 1000
)

// Price is what an execution costs.
type Price struct {
	CreditType string
	PerRun     Amount
	// PerStep are amounts for each finished run of a step, by its id, and
	// EveryStep that of the steps without one of their own.
	PerStep   map[string]Amount
	EveryStep Amount
	// Tokens are prices by model, * being all others.
	Tokens map[string]TokenPrice
}

// TokenPrice is for 1,000 tokens. Cached equals Input if it is not given.
type TokenPrice struct{ Input, Output, Cached Amount }

// Priced says whether the flow costs anything.
func (p *Program) Priced() bool { return p.Price != nil }

// Hold returns the most that an execution may be charged: the run, every step
// as often as it may run, of the blocks of a step the dearest, and the budget.
func (p *Program) Hold() Amount { return p.hold }

// StepPrice returns the price of a finished run of a step.
func (p *Program) StepPrice(id string) Amount {
	if p.Price == nil {
		return 0
	}
	return p.Price.step(id)
}

func (p *Price) step(id string) Amount {
	if amount, ok := p.PerStep[id]; ok {
		return amount
	}
	return p.EveryStep
}

// CallPrice returns the price of a call of a model: exact, and rounded down
// once. Of the input, what was cached has its own price. What a provider counts
// below zero is nothing, and no more can be cached than was given. It is at most
// the largest amount.
func (p *Program) CallPrice(name string, u model.Usage) Amount {
	if p.Price == nil {
		return 0
	}
	price, ok := p.Price.Tokens[name]
	if !ok {
		price = p.Price.Tokens[anyModel]
	}
	input, output := max(u.Input, 0), max(u.Output, 0)
	cached := min(max(u.Cached, 0), input)
	total := new(big.Int)
	for _, part := range []struct {
		tokens int64
		price  Amount
	}{{input - cached, price.Input}, {cached, price.Cached}, {output, price.Output}} {
		total.Add(total, times(big.NewInt(int64(part.price)), part.tokens))
	}
	total.Quo(total, big.NewInt(perTokens))
	if !fits(total) {
		return credit.MaxAmount
	}
	return Amount(total.Int64())
}

func times(amount *big.Int, n int64) *big.Int { return new(big.Int).Mul(amount, big.NewInt(n)) }

func fits(total *big.Int) bool { return total.CmpAbs(big.NewInt(int64(credit.MaxAmount))) <= 0 }

// holdOf returns the most that the steps of a block may cost together.
func (p *Price) holdOf(b *step.Block) *big.Int {
	total := new(big.Int)
	for _, s := range b.Steps {
		total.Add(total, big.NewInt(int64(p.step(s.ID))))
		dearest := new(big.Int)
		for _, inner := range s.Inner {
			if one := p.holdOf(inner); one.Cmp(dearest) > 0 {
				dearest = one
			}
		}
		total.Add(total, times(dearest, s.Most))
	}
	return total
}

// priceForm is a price as it is written. Amounts stay texts until they are
// parsed, so that none becomes a float.
type priceForm struct {
	CreditType string         `json:"credit_type"`
	PerRun     jsontext.Value `json:"per_run"`
	PerStep    jsontext.Value `json:"per_step"`
	Tokens     map[string]struct {
		Input  jsontext.Value `json:"input"`
		Output jsontext.Value `json:"output"`
		Cached jsontext.Value `json:"cached"`
	} `json:"tokens"`
}
