package actionpulse

import (
	"encoding/json"
	"strconv"

	"github.com/actionpulse/actionpulse/api"
)

// maxLevels is how deep an item may nest: 64 levels of a request, whose own
// object and array are two of them.
const maxLevels = 62

// checkJSON refuses what is JSON and intake does not store: the character
// U+0000, a number that no double holds, and nesting that goes too deep. data
// is what encoding/json has written.
func checkJSON(data []byte) error {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			end := textEnd(data, i)
			if holdsNUL(data[i:end]) {
				return invalid(api.RejectInvalidProperties, `a text holds the character \u0000`)
			}
			i = end - 1
		case c == '{' || c == '[':
			if depth++; depth > maxLevels {
				return invalid(api.RejectInvalidEvent, "the record nests too deep")
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			end := numberEnd(data, i)
			if _, err := strconv.ParseFloat(string(data[i:end]), 64); err != nil {
				return invalid(api.RejectInvalidProperties, "a number is out of range")
			}
			i = end - 1
		}
	}
	return nil
}

// textEnd returns where the string that begins at i ends.
func textEnd(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// holdsNUL reports whether a quoted string says U+0000.
func holdsNUL(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] == 'u' && string(text[i+1:i+5]) == "0000" {
			return true
		}
	}
	return false
}

func numberEnd(data []byte, i int) int {
	for i < len(data) {
		switch c := data[i]; {
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			i++
		default:
			return i
		}
	}
	return i
}

// personOf reads the two ids of a record of identify.
func personOf(data []byte) (Identity, error) {
	var p wirePerson
	err := json.Unmarshal(data, &p)
	return Identity{AnonID: p.AnonID, UserID: p.UserID}, err
}
