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
	if a < 0 {
		return "-" + (-a).String()
	}
	whole := strconv.FormatInt(int64(a/unit), 10)
	fraction := int64(a % unit)
	if fraction == 0 {
		return whole
	}
	text := strconv.FormatInt(unit+fraction, 10)[1:]
	return whole + "." + strings.TrimRight(text, "0")
}

// inRange says whether an amount is within what a balance can be.
func (a Amount) inRange() bool { return -MaxAmount <= a && a <= MaxAmount }
