package intake

import (
	"bytes"

	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	hyphenatedSize = 36
	urnPrefix      = "urn:uuid:"
)

// parseEventID reads a UUID in one of its four written forms: hyphenated, 32
// hex digits, {hyphenated} and urn:uuid:hyphenated, in any case, with nothing
// before or after. The nil and the max UUID are not ids: they are what clients
// send when they failed to make one, and would swallow every event.
func parseEventID(s []byte) (record.EventID, bool) {
	switch len(s) {
	case 32:
		return checkEventID(parseDigits(s))
	case hyphenatedSize:
		return checkEventID(parseHyphenated(s))
	case hyphenatedSize + 2:
		if s[0] != '{' || s[hyphenatedSize+1] != '}' {
			return record.EventID{}, false
		}
		return checkEventID(parseHyphenated(s[1 : hyphenatedSize+1]))
	case hyphenatedSize + len(urnPrefix):
		if !bytes.EqualFold(s[:len(urnPrefix)], []byte(urnPrefix)) {
			return record.EventID{}, false
		}
		return checkEventID(parseHyphenated(s[len(urnPrefix):]))
	default:
		return record.EventID{}, false
	}
}

func checkEventID(id record.EventID, ok bool) (record.EventID, bool) {
	var maximum record.EventID
	for i := range maximum {
		maximum[i] = 0xff
	}
	return id, ok && id != (record.EventID{}) && id != maximum
}

func parseHyphenated(s []byte) (record.EventID, bool) {
	if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return record.EventID{}, false
	}
	var digits [32]byte
	n := copy(digits[:], s[:8])
	n += copy(digits[n:], s[9:13])
	n += copy(digits[n:], s[14:18])
	n += copy(digits[n:], s[19:23])
	copy(digits[n:], s[24:])
	return parseDigits(digits[:])
}

func parseDigits(s []byte) (id record.EventID, ok bool) {
	for i := range id {
		high, low := hexValue[s[2*i]], hexValue[s[2*i+1]]
		if high|low == notHex {
			return record.EventID{}, false
		}
		id[i] = high<<4 | low
	}
	return id, true
}

const notHex = 0xff

// hexValue maps a byte to the value of the hex digit it is, or to notHex.
var hexValue = func() (table [256]byte) {
	for i := range table {
		switch c := byte(i); {
		case '0' <= c && c <= '9':
			table[i] = c - '0'
		case 'a' <= c && c <= 'f':
			table[i] = c - 'a' + 10
		case 'A' <= c && c <= 'F':
			table[i] = c - 'A' + 10
		default:
			table[i] = notHex
		}
	}
	return table
}()
