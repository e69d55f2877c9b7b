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
	switch {
	case len(values) > 1:
		return "", p.refuse(Malformed)
	case len(values) == 0, strings.Trim(values[0], " \t") == "":
		if p.Key.Required {
			return "", p.refuse(Missing)
		}
		return "", nil
	}
	key, ok := values[0], true
	if p.Key.Quoted {
		key, ok = unquote(strings.Trim(key, " \t"))
	}
	if !ok || !p.Key.allows(key) {
		return "", p.refuse(Malformed)
	}
	return key, nil
}

// allows says whether a key has the form the rule demands. NUL and what is not
// UTF-8 is never allowed: no store could keep it as text.
func (k *KeyRule) allows(key string) bool {
	longest := k.MaxLength
	if longest == 0 {
		longest = DefaultMaxLength
	}
	n := utf8.RuneCountInString(key)
	if n == 0 || n < k.MinLength || n > longest || !utf8.ValidString(key) || strings.ContainsAny(key, k.Without) {
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
// \\ as the only escapes, and nothing after it. Parameters are not read: the
// draft gives them no meaning.
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
