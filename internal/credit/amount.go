package credit

import (
	"errors"
	"strconv"
	"strings"
)

// Amount is an amount of credits in micro-units: 1 credit is 1,000,000.
type Amount int64

const (
	// unit is one credit.
	unit = 1_000_000
	// MaxAmount is the largest amount and balance: 12 digits before the point
	// and 6 after.
	MaxAmount Amount = 999_999_999_999_999_999

	wholeDigits    = 12
	fractionDigits = 6
)

// ErrAmount is returned for what is not an amount.
var ErrAmount = errors.New("an amount is a decimal of at most 12 digits before the point and 6 after, without an exponent")

// ParseAmount reads a decimal such as 10.50 or -3: what JSON allows as a
// number, without an exponent. Nothing is rounded: more digits are an error.
func ParseAmount(text string) (Amount, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	padded := len(whole) > 1 && whole[0] == '0'
	if whole == "" || padded || len(whole) > wholeDigits || len(fraction) > fractionDigits || point && fraction == "" ||
		!isDigits(whole) || !isDigits(fraction) {
		return 0, ErrAmount
	}
	micros, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", fractionDigits-len(fraction)), 10, 64)
	if err != nil {
		return 0, ErrAmount
	}
	if negative {
		micros = -micros
	}
	return Amount(micros), nil
}

func isDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// String writes an amount in credits, without zeros at the end: 10.5, -3, 0.
func (a Amount) String() string {
	sign := ""
	if a < 0 {
		sign = "-"
	}
	whole, fraction := a/unit, a%unit
	text := sign + strconv.FormatInt(magnitude(whole), 10)
	if fraction == 0 {
		return text
	}
	digits := strconv.FormatInt(unit+magnitude(fraction), 10)[1:]
	return text + "." + strings.TrimRight(digits, "0")
}

// magnitude is an amount without its sign; it is never as large as the largest
// integer.
func magnitude(a Amount) int64 {
	if a < 0 {
		return int64(-a)
	}
	return int64(a)
}

// inRange says whether an amount is within what a balance can be.
func (a Amount) inRange() bool { return -MaxAmount <= a && a <= MaxAmount }
