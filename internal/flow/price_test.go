package flow_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/credit"
	"github.com/actionpulse/actionpulse/internal/model"
)

func amount(t *testing.T, text string) credit.Amount {
	t.Helper()
	a, err := credit.ParseAmount(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCachedTokens: of 117,231 tokens of input 115,584 were cached, so 1,647 are
// paid for in full.
func TestCachedTokens(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, `{"steps": [], "limits": {"budget": "10"}, "price": {"tokens": {
		"gpt": {"input": "0.5", "output": "1.5", "cached": "0.05"}, "uncached": {"input": 0.5, "output": 1.5}, "*": {"output": "0.000001"}}}}`)
	u := model.Usage{Input: 117_231, Cached: 115_584, Output: 2_000, Reasoning: 1_999}
	for name, want := range map[string]string{
		"gpt":      "9.6027",  // 0.8235 + 5.7792 + 3
		"uncached": "61.6155", // 58.6155 + 3
		"other":    "0.000002",
	} {
		if got := p.CallPrice(name, u); got != amount(t, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestCallPrice(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, `{"steps": [], "limits": {"budget": 0}, "price": {"tokens": {
		"tiny": {"input": "0.000001", "output": "0.000001", "cached": "0.000001"}, "dear": {"input": "999999999999.999999"}, "free": {"cached": "0"}, "only": {"cached": "1"}}}}`)
	for _, c := range []struct {
		model string
		usage model.Usage
		want  credit.Amount
	}{
		{"tiny", model.Usage{Input: 999}, 0},
		{"tiny", model.Usage{Input: 500, Output: 500}, 1}, // rounded down once, not each part
		{"tiny", model.Usage{Input: 1999, Cached: 999, Output: 0}, 1},
		{"dear", model.Usage{Input: 1000}, credit.MaxAmount},
		{"dear", model.Usage{Input: math.MaxInt64}, credit.MaxAmount},
		{"dear", model.Usage{Input: -5, Output: -5, Cached: -5}, 0},
		{"only", model.Usage{Input: 1000, Cached: math.MaxInt64}, 1_000_000}, // no more can be cached than was given
		{"free", model.Usage{Input: 1_000_000, Cached: 1_000_000}, 0},
		{"unknown", model.Usage{Input: 1_000_000}, 0},
	} {
		if got := p.CallPrice(c.model, c.usage); got != c.want {
			t.Errorf("%s, %+v: got %s, want %s", c.model, c.usage, got, c.want)
		}
	}
	free := mustCompile(t, `{"steps": []}`)
	if free.CallPrice("tiny", model.Usage{Input: 1 << 40}) != 0 || free.StepPrice("x") != 0 {
		t.Error("a free flow costs something")
	}
}

// TestCallPriceIsExact compares with fractions.
func TestCallPriceIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		prices := [3]int64{}
		texts := [3]string{}
		for i := range prices {
			prices[i] = rapid.Int64Range(1, 5_000_000_000).Draw(rt, "price")
			texts[i] = credit.Amount(prices[i]).String()
		}
		input := rapid.Int64Range(0, 50_000_000).Draw(rt, "input")
		cached, output := rapid.Int64Range(0, input).Draw(rt, "cached"), rapid.Int64Range(0, 50_000_000).Draw(rt, "output")
		p := mustCompile(t, fmt.Sprintf(`{"steps": [], "limits": {"budget": 1}, "price": {"tokens": {"*": {"input": %s, "output": %q, "cached": %s}}}}`,
			texts[0], texts[1], texts[2]))
		exact := new(big.Rat)
		for i, tokens := range []int64{input - cached, output, cached} {
			exact.Add(exact, new(big.Rat).Mul(big.NewRat(tokens, 1000), new(big.Rat).SetInt64(prices[i])))
		}
		want := new(big.Int).Quo(exact.Num(), exact.Denom())
		if got := p.CallPrice("m", model.Usage{Input: input, Output: output, Cached: cached}); int64(got) != want.Int64() {
			rt.Fatalf("got %d, want %s", got, want)
		}
	})
}

func TestHold(t *testing.T) {
	t.Parallel()
	const inner = `{"id": "each", "type": "parallel", "over": [], "max_items": 10, "steps": [
			{"id": "pick", "type": "branch", "cases": [
				{"when": true, "steps": [{"id": "cheap", "type": "transform", "value": 1}]},
				{"when": true, "steps": [{"id": "dear1", "type": "transform", "value": 1}, {"id": "dear2", "type": "transform", "value": 1}]}
			], "else": {"steps": [{"id": "other", "type": "transform", "value": 1}]}}]},
		{"id": "last", "type": "transform", "value": 1, "if": false}`
	for price, want := range map[string]string{
		`{"per_run": "2"}`:                        "12",
		`{"per_run": 2.5, "credit_type": "gold"}`: "12.5",
		`{"per_step": {"cheap": "1"}}`:            "20",
		`{"per_step": {"dear1": "1", "dear2": "2", "other": "2.5", "cheap": "2.9"}}`: "40",
		`{"per_step": {"each": "1", "pick": "1", "last": "0.5"}}`:                    "21.5",
		`{"per_step": "1"}`: "42", // each, last, ten times pick and two more, the budget
		`{"per_run": "1", "tokens": {"*": {"input": "1"}}}`: "11",
	} {
		p := mustCompile(t, `{"steps": [`+inner+`], "limits": {"budget": "10"}, "price": `+price+`}`)
		if got := p.Hold(); got != amount(t, want) || !p.Priced() {
			t.Errorf("%s: got %s, want %s", price, got, want)
		}
	}
	for _, price := range []string{`{}`, `{"per_run": "0"}`, `{"credit_type": "gold"}`, `{"per_step": {"last": 0}}`, `{"tokens": {"*": {"input": "0"}}}`} {
		p := mustCompile(t, `{"steps": [`+inner+`], "limits": {"budget": "10"}, "price": `+price+`}`)
		if p.Priced() || p.Hold() != 0 {
			t.Errorf("%s: is not free: %s", price, p.Hold())
		}
	}
}

func TestPriceRules(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, `{"steps": [`+steps("a", "b")+`], "price": {"per_step": {"a": 0.1}, "per_run": "123456789012.123456"}}`)
	if p.Price.CreditType != "main" || p.StepPrice("a") != 100_000 || p.StepPrice("b") != 0 || p.Price.PerRun != 123456789012123456 {
		t.Errorf("got %+v", p.Price)
	}
	number := mustCompile(t, `{"steps": [], "price": {"per_run": 123456789012.123456}}`)
	if number.Price.PerRun != 123456789012123456 {
		t.Errorf("a number became a float: %d", number.Price.PerRun)
	}
	if most := mustCompile(t, `{"steps": [], "price": {"per_run": "999999999999.999999"}}`); most.Hold() != credit.MaxAmount {
		t.Errorf("got %s", most.Hold())
	}
}
