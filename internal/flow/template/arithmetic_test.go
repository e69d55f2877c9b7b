package template

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestWholeNumbersStayExact compares with integers without bounds: a result is
// the right one, or an error, and never another number.
func TestWholeNumbersStayExact(t *testing.T) {
	t.Parallel()
	operations := map[string]func(z, x, y *big.Int) *big.Int{"+": (*big.Int).Add, "-": (*big.Int).Sub, "*": (*big.Int).Mul}
	compiled := map[string]*Template{}
	for operator := range operations {
		one, err := Compile("${input.x " + operator + " input.y}")
		if err != nil {
			t.Fatal(err)
		}
		compiled[operator] = one
	}
	numbers := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 32, 1<<53 + 1, math.MaxInt64 - 1}))
	rapid.Check(t, func(rt *rapid.T) {
		x, y := numbers.Draw(rt, "x"), numbers.Draw(rt, "y")
		for operator, exact := range operations {
			want := exact(new(big.Int), big.NewInt(x), big.NewInt(y))
			got, err := compiled[operator].Eval(NewScope(map[string]any{"x": x, "y": y}, nil))
			switch {
			case want.IsInt64() && (err != nil || got != want.Int64()):
				rt.Fatalf("%d %s %d: got %v, %v, want %s", x, operator, y, got, err, want)
			case !want.IsInt64() && !errors.Is(err, errOverflow) && err == nil:
				rt.Fatalf("%d %s %d: got %v, want an error", x, operator, y, got)
			}
		}
	})
}
