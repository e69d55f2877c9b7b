package credit_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/credit"
)

func TestParseAmount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]credit.Amount{
		"0": 0, "-0": 0, "0.000000": 0, "-0.0": 0,
		"1": 1_000_000, "-3": -3_000_000, "10.50": 10_500_000, "0.3": 300_000, "0.000001": 1, "-0.000001": -1,
		"100.000000":           100_000_000,
		"999999999999":         999_999_999_999_000_000,
		"999999999999.999999":  credit.MaxAmount,
		"-999999999999.999999": -credit.MaxAmount,
	} {
		got, err := credit.ParseAmount(text)
		if err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseAmountRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", "+1", "--1", "-+1", " 1", "1 ", "1 000", "\t1", "1\n", "\u00a01", "1,5", "1_000", "1'000",
		".5", "5.", "-.5", ".", "1.2.3", "00", "01", "-01", "00.5", "1e3", "1E3", "1e-3", "1.0e0", "0x10", "1f", "Inf", "NaN", "null",
		"\u0661", "\uff11", "\u00bd", "1\x00", "1\xff",
		"1000000000000", "0000000000001", "1.0000000", "0.0000001", "0.0000000", "999999999999.9999999", "1000000000000.000000",
		strings.Repeat("9", 400), "0." + strings.Repeat("0", 400),
	} {
		if got, err := credit.ParseAmount(text); !errors.Is(err, credit.ErrAmount) || got != 0 {
			t.Errorf("%q was read as %d, %v", text, got, err)
		}
	}
}

// Every count of digits up to the limits is read, and one more is not.
func TestParseAmountDigits(t *testing.T) {
	t.Parallel()
	for whole := range 15 {
		for fraction := range 9 {
			text := strings.Repeat("9", whole) + "." + strings.Repeat("9", fraction)
			_, err := credit.ParseAmount(text)
			if fits := 1 <= whole && whole <= 12 && 1 <= fraction && fraction <= 6; (err == nil) != fits {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestAmountString(t *testing.T) {
	t.Parallel()
	for amount, want := range map[credit.Amount]string{
		0: "0", 1: "0.000001", -1: "-0.000001", 10_500_000: "10.5", 94_000_000: "94", 300_000: "0.3", -300_000: "-0.3", 1_000_001: "1.000001",
		credit.MaxAmount: "999999999999.999999", -credit.MaxAmount: "-999999999999.999999",
		math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808",
	} {
		if got := amount.String(); got != want {
			t.Errorf("%d is written %s, want %s", amount, got, want)
		}
	}
}

// What is written is read as the same amount, and in one spelling only.
func TestAmountRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := credit.Amount(rapid.Int64Range(int64(-credit.MaxAmount), int64(credit.MaxAmount)).Draw(t, "micros"))
		text := amount.String()
		if got, err := credit.ParseAmount(text); err != nil || got != amount {
			t.Fatalf("%d is written %s and read %d, %v", amount, text, got, err)
		}
		if strings.ContainsAny(text, "eE+") || strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
			t.Fatalf("%d is written %s", amount, text)
		}
	})
}

// Whatever is read has the value of its digits: nothing is rounded, cut or
// guessed.
func FuzzParseAmount(f *testing.F) {
	for _, text := range []string{"0", "-0", "1.5", "999999999999.999999", "1e5", "00", ".5", "5.", "+1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amount, err := credit.ParseAmount(text)
		if err != nil {
			return
		}
		digits, _ := strings.CutPrefix(text, "-")
		whole, fraction, point := strings.Cut(digits, ".")
		normal := whole
		if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
			normal += "." + fraction
		}
		if strings.HasPrefix(text, "-") && amount != 0 {
			normal = "-" + normal
		}
		if amount.String() != normal || len(whole) > 12 || point && len(digits) > len(whole)+7 {
			t.Errorf("%q was read as %s", text, amount)
		}
	})
}
