package sdk

import (
	"fmt"
	"strings"
)

func chunksOfRecordings(c *conversation) {
	send := func(credential, body string) *answer {
		return c.send(request{method: "POST", path: "/v1/replay", credential: credential, body: body})
	}
	chunk := func(session string, number any, events string) string {
		return fmt.Sprintf(`{"session_id":"%s","chunk":%v,"events":%s,"anon_id":"a","later":{"x":[null]}}`, session, number, events)
	}
	for _, n := range []int{0, 2, 1} {
		send(c.browser(), chunk("s", n, `[{"type":3,"x":1.50}]`)).wants(202).has("duplicate", "false").has("conflict", "null")
	}
	send(c.server(), chunk("s", 1, `[{"type":3,"x":1.50}]`)).wants(202).has("duplicate", "true").has("conflict", "null")
	send(c.legacy(), chunk("s", "1.0", `[ {"x":15e-1,"t\u0079pe":3.0} ]`)).wants(202).has("duplicate", "true").has("conflict", "null")
	send(c.browser(), chunk("s", 0, `[{"type":3,"x":1.51}]`)).wants(202).has("conflict", "true")
	send(c.browser(), chunk("s", 0, `[]`)).wants(202).has("conflict", "true")
	send(c.browser(), chunk("S", 1000000, `[]`)).wants(202).has("duplicate", "false")
	send(c.browser(), chunk(strings.Repeat("é", 200), 0, `[{}]`)).wants(202).has("duplicate", "false")
	send(c.project(), chunk("s", 9, `[]`)).wants(403)
	send(noCredential, chunk("s", 9, `[]`)).wants(401)
	deep := func(levels int, last string) string {
		return `[` + strings.Repeat(`{"b":0,"a":`, levels) + last + strings.Repeat(`}`, levels) + `]`
	}
	send(c.browser(), chunk("deep", 0, deep(510, `1`))).wants(202).has("duplicate", "false")
	send(c.browser(), chunk("deep", 0, deep(510, `1.0`))).wants(202).has("duplicate", "true").has("conflict", "null")
	send(c.browser(), chunk("deep", 0, deep(510, `2`))).wants(202).has("conflict", "true")
	for _, malformed := range []string{
		``, `{`, `{"session_id":"s","chunk":9,"events":[],"chunk":9}`, `{"session_id":"s","chunk":9,"events":[{"a":1,"a":2}]}`,
		chunk("s", 9, deep(511, `1`)), `{"session_id":"s","chunk":9,"events":[],"x":` + deep(63, `1`) + `}`,
	} {
		send(c.browser(), malformed).wants(400)
	}
	for _, refused := range []string{
		`[]`, `7`, `{}`, `{"session_id":null,"chunk":9,"events":[]}`, chunk("", 9, `[]`), chunk(strings.Repeat("é", 201), 9, `[]`),
		chunk("s", -1, `[]`), chunk("s", 1000001, `[]`), chunk("s", 0.5, `[]`), chunk("s", `"9"`, `[]`), chunk("s", `null`, `[]`),
		chunk("s", 9, `{}`), chunk("s", 9, `null`), chunk("s", 9, `[1]`), chunk("s", 9, `[{},null]`), `{"session_id":"s","chunk":9}`,
		`{"session_id":"s","chunk":9,"events":[],"user_id":""}`, `{"session_id":"s","chunk":9,"events":[],"anon_id":7}`,
	} {
		send(c.browser(), refused).wants(422)
	}
	send(c.browser(), chunk("s", 9, `[]`)).wants(202).has("duplicate", "false") // nothing of those was taken
}
