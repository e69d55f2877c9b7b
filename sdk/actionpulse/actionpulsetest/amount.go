package actionpulsetest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// amount is an amount of credits in millionths.
type amount int64

const (
	// unit is one credit, and fractionDigits what it has zeros.
	unit           = 1_000_000
	fractionDigits = 6
	// maxAmount is the largest amount and balance.
	maxAmount amount = 999_999_999_999_999_999
)

var amounts = regexp.MustCompile(`\A(-?)(0|[1-9]\d{0,11})(?:\.(\d{1,6}))?\z`)

// parseAmount reads a decimal of at most 12 digits before the point and 6 after.
// Nothing is rounded.
func parseAmount(text string) (amount, bool) {
	m := amounts.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1]+m[2]+m[3]+strings.Repeat("0", fractionDigits-len(m[3])), 10, 64)
	return amount(n), err == nil
}

// String writes an amount without zeros at the end.
func (a amount) String() string {
	sign, n := "", int64(a)
	if n < 0 {
		sign, n = "-", -n
	}
	whole := sign + strconv.FormatInt(n/unit, 10)
	if n%unit == 0 {
		return whole
	}
	return whole + "." + strings.TrimRight(strconv.FormatInt(unit+n%unit, 10)[1:], "0")
}

func (a amount) inRange() bool { return -maxAmount <= a && a <= maxAmount }

// readAmount reads an amount, which is a text or a number. It refuses with
// invalid_request.
func readAmount(raw json.RawMessage) (amount, error) {
	given, isText := textOf(raw)
	if !isText {
		given = string(raw)
	}
	a, ok := parseAmount(given)
	if !ok {
		return 0, invalidRequest("amount", "must be a decimal of at most 12 digits before the point and 6 after")
	}
	return a, nil
}

// readAmountOr is readAmount for an amount that may be absent.
func readAmountOr(raw json.RawMessage, absent amount) (amount, error) {
	if len(raw) == 0 || isNull(raw) {
		return absent, nil
	}
	return readAmount(raw)
}
