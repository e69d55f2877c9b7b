package idempotency_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/idempotency"
)

// keyCase is a header and what must come of it. A problem of 0 is none.
type keyCase struct {
	name    string
	header  []string
	key     string
	problem idempotency.Problem
}

func checkKeys(t *testing.T, p idempotency.Policy, tests []keyCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for _, value := range tt.header {
				h.Add("idempotency-key", value)
			}
			key, refused := p.ParseKey(h)
			switch {
			case refused == nil && tt.problem != 0:
				t.Fatalf("got key %q, want problem %d", key, tt.problem)
			case refused != nil && (refused.Problem != tt.problem || key != ""):
				t.Fatalf("got key %q and problem %d, want problem %d", key, refused.Problem, tt.problem)
			case refused == nil && key != tt.key:
				t.Fatalf("got key %q, want %q", key, tt.key)
			}
		})
	}
}

func text(n int) string { return strings.Repeat("k", n) }

func TestKeysOfMarkers(t *testing.T) {
	checkKeys(t, idempotency.ReleaseMarker(), []keyCase{
		{name: "absent", problem: idempotency.Missing},
		{name: "empty", header: []string{""}, problem: idempotency.Missing},
		{name: "blanks", header: []string{" \t "}, problem: idempotency.Missing},
		{name: "two headers", header: []string{text(8), text(8)}, problem: idempotency.Malformed},
		{name: "two headers, one empty", header: []string{"", text(8)}, problem: idempotency.Malformed},
		{name: "two folded into one", header: []string{"build-0001, build-0002"}, problem: idempotency.Malformed},
		{name: "7 characters", header: []string{text(7)}, problem: idempotency.Malformed},
		{name: "8 characters", header: []string{text(8)}, key: text(8)},
		{name: "128 characters", header: []string{text(128)}, key: text(128)},
		{name: "129 characters", header: []string{text(129)}, problem: idempotency.Malformed},
		{name: "blanks around it are not part of it", header: []string{" build-0001\t"}, key: "build-0001"},
		{name: "inner space", header: []string{"build 0001"}, problem: idempotency.Malformed},
		{name: "comma", header: []string{"build,0001"}, problem: idempotency.Malformed},
		{name: "tab", header: []string{"build\t0001"}, problem: idempotency.Malformed},
		{name: "DEL", header: []string{"build0001\x7f"}, problem: idempotency.Malformed},
		{name: "first and last visible character", header: []string{"!build0001~"}, key: "!build0001~"},
		{name: "not ASCII", header: []string{"сборка-0001"}, problem: idempotency.Malformed},
	})
}

func TestKeysOfWork(t *testing.T) {
	two := strings.Repeat("é", 190)
	checkKeys(t, idempotency.CreditMovement(0), []keyCase{
		{name: "absent", problem: idempotency.Missing},
		{name: "empty", header: []string{""}, problem: idempotency.Missing},
		{name: "blanks", header: []string{" \t"}, problem: idempotency.Missing},
		{name: "two headers", header: []string{"a", "a"}, problem: idempotency.Malformed},
		{name: "one character", header: []string{"a"}, key: "a"},
		{name: "190 characters", header: []string{text(190)}, key: text(190)},
		{name: "191 characters", header: []string{text(191)}, problem: idempotency.Malformed},
		{name: "190 characters of two bytes", header: []string{two}, key: two},
		{name: "191 characters of two bytes", header: []string{two + "é"}, problem: idempotency.Malformed},
		{name: "commas and inner blanks", header: []string{"order 42, email"}, key: "order 42, email"},
		{name: "quotes are part of it", header: []string{`"abc"`}, key: `"abc"`},
		{name: "NUL", header: []string{"a\x00b"}, problem: idempotency.Malformed},
		{name: "inner tab", header: []string{"a\tb"}, problem: idempotency.Malformed},
		{name: "line feed", header: []string{"a\nb"}, problem: idempotency.Malformed},
		{name: "DEL", header: []string{"a\x7fb"}, problem: idempotency.Malformed},
		{name: "C1 control", header: []string{"a\u0085b"}, problem: idempotency.Malformed},
		{name: "not UTF-8", header: []string{"a\xffb"}, problem: idempotency.Malformed},
		{name: "a surrogate", header: []string{"a\xed\xa0\x80b"}, problem: idempotency.Malformed},
	})
}

func TestKeysOfTheDraft(t *testing.T) {
	checkKeys(t, idempotency.IETF(0), []keyCase{
		{name: "absent", problem: idempotency.Missing},
		{name: "blanks", header: []string{"  "}, problem: idempotency.Missing},
		{name: "quoted", header: []string{`"8e03978e-40d5-43e8"`}, key: "8e03978e-40d5-43e8"},
		{name: "blanks around the quotes", header: []string{` "k1" `}, key: "k1"},
		{name: "escaped quote and backslash", header: []string{`"a\"b\\c"`}, key: `a"b\c`},
		{name: "another escape", header: []string{`"a\nb"`}, problem: idempotency.Malformed},
		{name: "unquoted", header: []string{"k1"}, problem: idempotency.Malformed},
		{name: "empty string", header: []string{`""`}, problem: idempotency.Malformed},
		{name: "one quote", header: []string{`"`}, problem: idempotency.Malformed},
		{name: "unfinished", header: []string{`"k1`}, problem: idempotency.Malformed},
		{name: "its end is escaped", header: []string{`"k1\"`}, problem: idempotency.Malformed},
		{name: "ends in half an escape", header: []string{`"k1\`}, problem: idempotency.Malformed},
		{name: "parameter", header: []string{`"k1";a=1`}, problem: idempotency.Malformed},
		{name: "parameter with a string", header: []string{`"k1";a="1"`}, problem: idempotency.Malformed},
		{name: "list", header: []string{`"k1", "k2"`}, problem: idempotency.Malformed},
		{name: "two headers", header: []string{`"k1"`, `"k1"`}, problem: idempotency.Malformed},
		{name: "not ASCII", header: []string{`"é"`}, problem: idempotency.Malformed},
		{name: "inner blank", header: []string{`"k 1"`}, problem: idempotency.Malformed},
		{name: "255 characters", header: []string{`"` + text(255) + `"`}, key: text(255)},
		{name: "256 characters", header: []string{`"` + text(256) + `"`}, problem: idempotency.Malformed},
	})
}

func TestAKeyThatIsNotRequired(t *testing.T) {
	p := idempotency.IETF(0)
	p.Key.Required = false
	checkKeys(t, p, []keyCase{
		{name: "absent", key: ""},
		{name: "empty", header: []string{""}, key: ""},
		{name: "but not a malformed one", header: []string{"k1"}, problem: idempotency.Malformed},
		{name: "nor two", header: []string{"", ""}, problem: idempotency.Malformed},
	})
}

// A key that is accepted must fit a store, whatever the rule of length is left
// at.
func TestTheDefaultLengthOfKeys(t *testing.T) {
	p := idempotency.IETF(0)
	p.Key = idempotency.KeyRule{Required: true}
	long := strings.Repeat("\U0001F511", 255)
	checkKeys(t, p, []keyCase{
		{name: "255 characters of four bytes", header: []string{long}, key: long},
		{name: "256", header: []string{long + "k"}, problem: idempotency.Malformed},
	})
}
