package http

import (
	"net/url"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow/template"
)

// blanked stands where a secret was.
const blanked = "[redacted]"

// secretWords are those within the names of headers and parameters that carry
// credentials; secretNames are names that say so only as a whole.
var (
	secretWords = []string{"auth", "key", "token", "secret", "credential", "session", "signature", "passw", "cookie"}
	secretNames = []string{"sig", "pass", "pwd", "jwt", "sid"}
)

// plainNames and plainPrefixes are the headers of a request that are shown. Any
// other may be how its server knows the caller, whatever its name.
var (
	plainNames = []string{
		"accept", "cache-control", "content-encoding", "content-language", "content-length", contentType, "date", "host", idempotencyKey,
		"prefer", "range", "traceparent", "tracestate", "user-agent", "x-request-id",
	}
	plainPrefixes = []string{"accept-", "if-"}
)

// idempotencyKey opens no door, though it is called a key.
const idempotencyKey = "idempotency-key"

// Shown makes of the value of a step, as JSON, what may be shown of it: the
// same with the values of those headers blanked that carry credentials. Later
// steps see the value itself. What has no headers comes back as it is, as does
// nothing at all; what is no JSON is blanked as a whole.
func Shown(output []byte) []byte {
	if len(output) == 0 {
		return output
	}
	value, err := template.Decode(output)
	if err != nil {
		return []byte(`"` + blanked + `"`)
	}
	object, _ := value.(map[string]any)
	headers, there := object["headers"]
	if !there {
		return output
	}
	if members, ok := headers.(map[string]any); ok {
		for name, header := range members {
			members[name] = shownHeader(name, header)
		}
	} else {
		object["headers"] = blanked // no step makes it: nobody knows what it is
	}
	encoded, err := template.Encode(value)
	if err != nil {
		return []byte(`"` + blanked + `"`)
	}
	return encoded
}

// shownAnswer are the headers of an answer as they are kept for traces.
func shownAnswer(headers map[string]string) map[string]any {
	out := make(map[string]any, len(headers))
	for name, value := range headers {
		out[name] = shownHeader(name, strings.ToValidUTF8(value, "�"))
	}
	return out
}

// shownRequest are the headers of a request as they are kept for traces.
func shownRequest(headers map[string]string) map[string]any {
	out := make(map[string]any, len(headers))
	for name, value := range headers {
		if !plain(name) || secret(name) {
			value = blanked
		}
		out[name] = strings.ToValidUTF8(value, "�")
	}
	return out
}

// shownHeader is the value of a header of an answer.
func shownHeader(name string, value any) any {
	if secret(name) {
		return blanked
	}
	text, ok := value.(string)
	if ok && (strings.EqualFold(name, "location") || strings.EqualFold(name, "content-location")) {
		return shownURL(text)
	}
	return value
}

func plain(name string) bool {
	return slices.Contains(plainNames, name) || slices.ContainsFunc(plainPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// secret says whether the name is one of a header or parameter that carries a
// credential.
func secret(name string) bool {
	name = strings.ToLower(name)
	if name == idempotencyKey {
		return false
	}
	return slices.Contains(secretNames, name) || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// shownURL blanks the user, the password and secret parameters of a URL, which
// need not be a valid one. The rest stays to the letter.
func shownURL(text string) string {
	text, fragment, hasFragment := strings.Cut(text, "#")
	text, query, hasQuery := strings.Cut(text, "?")
	if scheme, rest, ok := strings.Cut(text, "//"); ok {
		authority, path, hasPath := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			text = scheme + "//" + blanked + authority[at:]
			if hasPath {
				text += "/" + path
			}
		}
	}
	if hasQuery {
		text += "?" + shownQuery(query)
	}
	if hasFragment {
		text += "#" + shownQuery(fragment)
	}
	return text
}

func shownQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		escaped, _, hasValue := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(escaped)
		if hasValue && (err != nil || secret(name)) {
			pairs[i] = escaped + "=" + blanked
		}
	}
	return strings.Join(pairs, "&")
}
