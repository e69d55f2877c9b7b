package idempotency

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseKey reads the key of a request's header. It returns an empty key and no
// error when there is none and the policy does not require one. The error says
// [Missing] or [Malformed]; nothing has been looked up or reserved by then.
func (p *Policy) ParseKey(h http.Header) (string, *Error) {
	values := h.Values(Header)
	if len(values) > 1 {
		return "", p.refuse(Malformed)
	}
	// HTTP/1 has trimmed the value already, HTTP/2 does not.
	key, ok := strings.Trim(strings.Join(values, ""), " \t"), true
	if key == "" {
		if p.Key.Required {
			return "", p.refuse(Missing)
		}
		return "", nil
	}
	if p.Key.Quoted {
		key, ok = unquote(key)
	}
	if !ok || !p.Key.Allows(key) {
		return "", p.refuse(Malformed)
	}
	return key, nil
}

// Allows says whether a key has the form the rule demands. NUL and what is not
// UTF-8 is never allowed: no store could keep it as text.
func (k *KeyRule) Allows(key string) bool {
	n := utf8.RuneCountInString(key)
	if n == 0 || n < k.MinLength || n > k.longest() || !utf8.ValidString(key) || strings.ContainsAny(key, k.Without) {
		return false
	}
	for _, r := range key {
		if unicode.IsControl(r) || k.VisibleASCII && (r < '!' || r > '~') {
			return false
		}
	}
	return true
}

// unquote reads a string of RFC 9651 §3.3.3: ASCII between quotes, with \" and
// \\ as the only escapes. Parameters after it are refused: the draft gives them
// no meaning, so whoever sends some expects what will not happen.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	inner := s[1 : len(s)-1]
	var out strings.Builder
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		switch {
		case c == '"' || c < ' ' || c > '~':
			return "", false
		case c == '\\':
			i++
			if i == len(inner) || inner[i] != '"' && inner[i] != '\\' {
				return "", false
			}
			c = inner[i]
		}
		out.WriteByte(c)
	}
	return out.String(), true
}
