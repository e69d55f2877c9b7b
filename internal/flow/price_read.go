package flow

import (
	"maps"
	"math/big"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// amount reads an amount; one that is absent is zero.
func (c *compilation) amount(path string, raw jsontext.Value) Amount {
	if raw == nil {
		return 0
	}
	text := string(raw)
	if raw.Kind() == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			c.refuse(path, "%v", credit.ErrAmount)
		}
	}
	amount, err := credit.ParseAmount(text)
	switch {
	case err != nil:
		c.refuse(path, "%v", credit.ErrAmount)
	case amount < 0:
		c.refuse(path, "an amount must not be negative")
	}
	return max(amount, 0)
}

// price reads the price rules. A flow without an amount above zero is free.
func (c *compilation) price(form *priceForm) {
	if form == nil {
		return
	}
	p := &Price{
		CreditType: form.CreditType, PerRun: c.amount("price.per_run", form.PerRun),
		PerStep: map[string]Amount{}, Tokens: map[string]TokenPrice{},
	}
	if p.CreditType == "" {
		p.CreditType = defaultCreditType
	}
	c.stepPrices(p, form.PerStep)
	dear := p.PerRun > 0 || p.EveryStep > 0
	for _, amount := range p.PerStep {
		dear = dear || amount > 0
	}
	tokens := c.tokenPrices(p, form)
	if tokens && !c.hasBudget {
		c.refuse("limits.budget", "the member is required: token prices need a budget, since nobody knows before how many there will be")
	}
	if dear || tokens {
		c.program.Price = p
	}
}

func (c *compilation) stepPrices(p *Price, raw jsontext.Value) {
	if raw == nil {
		return
	}
	if raw.Kind() != '{' {
		p.EveryStep = c.amount("price.per_step", raw)
		return
	}
	var byID map[string]jsontext.Value
	if err := json.Unmarshal(raw, &byID); err != nil {
		c.refuse("price.per_step", "this cannot be read")
		return
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		path := member("price.per_step", shorten(id))
		if c.program.byID[id] == nil {
			c.refuse(path, "there is no such step")
		}
		p.PerStep[id] = c.amount(path, byID[id])
	}
}

// tokenPrices says whether any token costs something.
func (c *compilation) tokenPrices(p *Price, form *priceForm) bool {
	dear := false
	for _, name := range slices.Sorted(maps.Keys(form.Tokens)) {
		raw, path := form.Tokens[name], member("price.tokens", shorten(name))
		price := TokenPrice{Input: c.amount(path+".input", raw.Input), Output: c.amount(path+".output", raw.Output)}
		price.Cached = price.Input
		if raw.Cached != nil {
			price.Cached = c.amount(path+".cached", raw.Cached)
		}
		p.Tokens[name] = price
		dear = dear || price != TokenPrice{}
	}
	return dear
}

// holdAmount computes the hold of a priced flow.
func (c *compilation) holdAmount(steps *step.Block) {
	p := c.program.Price
	if p == nil || steps == nil {
		return
	}
	total := p.holdOf(steps)
	total.Add(total, big.NewInt(int64(p.PerRun)))
	total.Add(total, big.NewInt(int64(c.program.Limits.Budget)))
	if !fits(total) {
		c.refuse("price", "an execution could cost more than the largest amount, %s", credit.MaxAmount)
		return
	}
	c.program.hold = Amount(total.Int64())
}
