package sdk

import (
	"fmt"
	"strings"
	"time"
)

var intakeScenarios = []scenario{
	{"forms of event ids", eventIDs},
	{"order of the checks", orderOfChecks},
	{"poison pill", poisonPill},
	{"three in one", threeInOne},
	{"kinds of keys", kindsOfKeys},
	{"batches that are refused", refusedBatches},
	{"times", times},
	{"beacons", beacons},
	{"identify and alias", identifyAndAlias},
	{"media", media},
	{"chunks of recordings", chunksOfRecordings},
}

// items is the body of a batch.
func items(list ...string) string { return `{"events":[` + strings.Join(list, ",") + `]}` }

// item is an item with an id, which is JSON.
func item(id string) string { return `{"event":"e","user_id":"u","event_id":` + id + `}` }

const uuid1 = "0197d6a4-5f0e-7cc2-9d33-2f5b0f0c1a01"

func eventIDs(c *conversation) {
	plain := strings.ReplaceAll(uuid1, "-", "")
	c.track(c.server(), items(item(`"`+uuid1+`"`))).wants(202).has("duplicates", "0")
	for _, one := range []string{strings.ToUpper(uuid1), plain, strings.ToUpper(plain), "{" + uuid1 + "}", "urn:uuid:" + uuid1, "URN:UUID:" + uuid1} {
		c.track(c.server(), items(item(`"`+one+`"`))).wants(202).has("duplicates", "1").has("accepted", "1")
	}
	for _, one := range []string{
		`"x` + uuid1 + `y"`, `" ` + uuid1 + ` "`, `"00000000-0000-0000-0000-000000000000"`, `"ffffffff-ffff-ffff-ffff-ffffffffffff"`,
		`"` + uuid1[1:] + `"`, `"` + uuid1 + `\n"`, `"` + strings.ReplaceAll(uuid1, "-", "_") + `"`, `""`, `42`, `[]`, `{}`, `true`,
		`"{` + plain + `}"`, `"urn:uuid:` + plain + `"`, `"` + strings.Repeat("x", 64) + `"`, `"` + strings.Repeat("é", 65) + `"`, `"50172"`,
	} {
		c.track(c.server(), items(item(one))).wants(202).has("accepted", "0").has("rejected.0.code", `"invalid_event_id"`)
	}
	for range 2 {
		c.track(c.server(), items(item(`null`), `{"event":"e","user_id":"u"}`)).wants(202).has("accepted", "2").has("duplicates", "0")
	}
}

// orderOfChecks gives each item all the faults from one on: the first is the
// verdict.
func orderOfChecks(c *conversation) {
	faults := []struct{ member, value string }{
		{"event", `""`},
		{"event_id", `"no"`},
		{"anon_id", `7`},
		{"user_id", `""`},
		{"session_id", `""`},
		{"ts", `1`},
		{"properties", `[]`},
		{"context", `"x"`},
	}
	right := map[string]string{"event": `"e"`, "event_id": `null`, "anon_id": `"a"`, "user_id": `"u"`, "session_id": `"s"`, "ts": `null`, "properties": `{}`, "context": `{}`}
	codes := []string{
		"invalid_event", "invalid_event_id", "invalid_anon_id", "invalid_user_id", "invalid_session_id", "invalid_timestamp",
		"invalid_properties", "invalid_context",
	}
	for from, code := range codes {
		var members []string
		for i, f := range faults {
			if i < from {
				f.value = right[f.member]
			}
			members = append(members, fmt.Sprintf("%q:%s", f.member, f.value))
		}
		for range 2 { // a repeat gets the same verdict
			c.track(c.server(), items("{"+strings.Join(members, ",")+"}")).wants(202).has("rejected.0.code", `"`+code+`"`)
		}
	}
	large := strings.Repeat("x", 64<<10)
	for _, one := range []struct{ item, code string }{
		{`{"event":"e"}`, "missing_identity"},
		{`{"event":"e","anon_id":null,"user_id":null,"session_id":""}`, "missing_identity"},
		{`{"event":"e","user_id":"u","properties":{"x":"` + large + `"}}`, "event_too_large"},
		{`{"event":"e","user_id":"u","context":7,"properties":{"x":"` + large + `"}}`, "invalid_context"},
		{`{"event":"e","user_id":"u","properties":{"x":"\u0000"}}`, "invalid_properties"},
		{`{"event":"e","user_id":"u","properties":{"\u0000":1}}`, "invalid_properties"},
		{`{"event":"e","user_id":"u","properties":{"x":1e999}}`, "invalid_properties"},
		{`{"event":"e","user_id":"u","context":{"x":[{"y":"\u0000"}]}}`, "invalid_context"},
		{`{"event":"e","user_id":"u","event_id":"` + uuid1 + `","event_id":"` + uuid1 + `"}`, "invalid_event"},
		{`{"event":"e","user_id":"u","properties":{"a":1,"a":1}}`, "invalid_event"},
		{`{"event":"e","user_id":"u","more":{"a":1,"\u0061":1}}`, "invalid_event"},
		{`{"event":"e","user_id":"u","properties":{"a":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}}`, "invalid_event"},
		{`7`, "invalid_event"},
		{`null`, "invalid_event"},
		{`[]`, "invalid_event"},
		{`"e"`, "invalid_event"},
		{`{}`, "invalid_event"},
		{`{"event":7,"user_id":"u"}`, "invalid_event"},
		{`{"event":" \t","user_id":"u"}`, "invalid_event"},
		{`{"event":"a\nb","user_id":"u"}`, "invalid_event"},
		{`{"event":"` + strings.Repeat("é", 201) + `","user_id":"u"}`, "invalid_event"},
		{`{"event":"e","user_id":"` + strings.Repeat("é", 201) + `"}`, "invalid_user_id"},
		{`{"event":"e","anon_id":["a"],"user_id":"u"}`, "invalid_anon_id"},
	} {
		c.track(c.server(), items(one.item)).wants(202).has("accepted", "0").has("rejected.0.code", `"`+one.code+`"`)
	}
	for _, fine := range []string{
		`{"event":"` + strings.Repeat("é", 200) + `","user_id":"` + strings.Repeat("é", 200) + `","unknown":[1,2]}`,
		`{"event":"e","user_id":"u","properties":{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}}`,
		`{"\u0065vent":"e","user_id":"u","properties":null,"ts":null,"session_id":null}`,
	} {
		c.track(c.server(), items(fine)).wants(202).has("accepted", "1")
	}
}

func poisonPill(c *conversation) {
	list := make([]string, 100)
	for i := range list {
		list[i] = item(fmt.Sprintf(`"0197d6a4-5f0e-7cc2-9d33-%012d"`, i))
	}
	list[37] = item(`"50172"`)
	list[38] = `{"event":"","user_id":"u"}`
	for _, duplicates := range []string{"0", "98"} {
		c.track(c.server(), items(list...)).wants(202).has("accepted", "98").has("duplicates", duplicates).
			has("rejected.0.index", "37").has("rejected.0.event_id", `"50172"`).has("rejected.1.index", "38").has("rejected.1.event_id", "null")
	}
}

func threeInOne(c *conversation) {
	id := func(n string) string { return item(`"0197d6a4-5f0e-7cc2-9d33-00000000000` + n + `"`) }
	c.track(c.server(), items(id("a"))).wants(202)
	c.track(c.server(), items(id("a"), id("b"), id("c"), id("c"))).wants(202).has("accepted", "4").has("duplicates", "2")
	c.track(c.server(), items(strings.Replace(id("a"), `"e"`, `"another"`, 1))).wants(202).has("duplicates", "1")
}

func kindsOfKeys(c *conversation) {
	for _, credential := range []string{c.server(), c.browser(), c.legacy()} {
		c.track(credential, items(item(`"`+uuid1+`"`))).wants(202).has("duplicates", "0")
		c.track(credential, items(item(`"`+uuid1+`"`))).wants(202).has("duplicates", "1")
	}
}

func refusedBatches(c *conversation) {
	one := item("null")
	for _, body := range []string{
		`{"events":[]}`, `{}`, `{"events":null}`, `{"events":{}}`, `[]`, `7`, `null`, `{"events":[` + one + `],"sent_at":"yesterday"}`,
		`{"events":[` + one + `],"sent_at":17}`, `{"events":[` + one + `],"historical":"yes"}`, items(strings.Split(strings.Repeat(one+"|", 1000)+one, "|")...),
	} {
		c.track(c.server(), body).refuses(422, "validation_failed")
	}
	c.track(c.server(), items(strings.Split(strings.Repeat(one+"|", 999)+one, "|")...)).wants(202).has("accepted", "1000")
	for _, body := range []string{
		``, ` `, `{`, `{"events":[` + one + `]`, `{"events":[` + one + `]} x`, `{"events":[` + one + `],}`, "{\"events\":[{\"event\":\"\xff\"}]}",
		`{"events":[{"event":"\ud800"}]}`, `{"events":[{"event":"\udc00x"}]}`, `{"events":[],"events":[]}`, `{"events":[` + one + `],"a":{"b":1,"b":1}}`,
		`{"events":[` + one + `],"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "\ufeff" + items(one), `{"events":[` + one + `],"sent_at":1,"x":}`,
	} {
		c.track(c.server(), body).refuses(400, "invalid_json")
	}
	c.track(c.server(), `{"unknown":{},"events":[`+one+`]}`).wants(202)
	c.track(c.server(), `{"events":[`+one+`],"a":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`).wants(202)
	c.track(c.server(), items(`{"event":"\ud83d\ude00","user_id":"u"}`)).wants(202).has("accepted", "1")
	c.track(c.browser(), `{"historical":true,"events":[`+one+`]}`).refuses(403, "forbidden")
	c.track(c.browser(), `{"historical":true,"events":[]}`).refuses(422, "validation_failed")
	c.track(c.browser(), `{"historical":false,"events":[`+one+`]}`).wants(202)
	c.track(c.legacy(), `{"historical":true,"events":[`+one+`]}`).wants(202)
}

func times(c *conversation) {
	for _, one := range []struct {
		ts   string
		fine bool
	}{
		{`"2026-05-01T10:00:00Z"`, true},
		{`"2026-05-01T10:00:00.123456789+05:30"`, true},
		{`"2026-05-01t10:00:00z"`, true},
		{`1777629600000`, true},
		{`"2016-12-31T23:59:60Z"`, true},
		{`"9999-12-31T23:59:59Z"`, true},
		{`253402300799999`, true},
		{`100000000000`, true},
		{`"0001-01-01T00:00:00Z"`, true},
		{`99999999999`, false},
		{`1777629600`, false},
		{`1777629600000.5`, false},
		{`1.7e12`, false},
		{`-1777629600000`, false},
		{`253402300800000`, false},
		{`"1777629600000"`, false},
		{`"2026-05-01"`, false},
		{`"2026-05-01 10:00:00Z"`, false},
		{`"2026-05-01T10:00:00"`, false},
		{`"2026-05-01T10:00:00,5Z"`, false},
		{`"2026-02-30T10:00:00Z"`, false},
		{`"2026-05-01T24:00:00Z"`, false},
		{`"2026-05-01T10:00:60Z"`, false},
		{`"2026-05-01T10:00:00+24:00"`, false},
		{`"2026-05-01T10:00:00+05:60"`, false},
		{`"2026-5-1T10:00:00Z"`, false},
		{`"10000-01-01T00:00:00Z"`, false},
		{`"9999-12-31T23:59:59-01:00"`, false},
		{`true`, false},
		{`{}`, false},
	} {
		want := map[bool]string{true: "1", false: "0"}[one.fine]
		c.track(c.server(), items(`{"event":"e","user_id":"u","ts":`+one.ts+`}`)).wants(202).has("accepted", want)
		sent := c.track(c.server(), `{"sent_at":`+one.ts+`,"events":[`+item("null")+`]}`)
		if one.fine {
			sent.wants(202)
		} else {
			sent.refuses(422, "validation_failed").has("error.details.field", `"sent_at"`)
		}
	}
}

func identifyAndAlias(c *conversation) {
	for range 5 {
		c.send(request{path: "/v1/identify", credential: c.browser(), body: `{"anon_id":"a","user_id":"u","traits":{"plan":"pro"}}`}).wants(202)
		c.send(request{path: "/v1/alias", credential: c.server(), body: `{"anon_id":"a","user_id":"u"}`}).wants(202)
	}
	c.send(request{path: "/v1/alias", credential: c.browser(), body: `{"anon_id":"a","user_id":"u"}`}).refuses(403, "forbidden")
	for _, path := range []string{"/v1/identify", "/v1/alias"} {
		for _, body := range []string{
			`{}`, `{"anon_id":"a"}`, `{"user_id":"u"}`, `{"anon_id":"","user_id":"u"}`, `{"anon_id":"a","user_id":7}`, `[]`, `null`,
			`{"anon_id":"a","user_id":"` + strings.Repeat("u", 201) + `"}`, `{"anon_id":null,"user_id":"u"}`,
		} {
			c.send(request{path: path, credential: c.server(), body: body}).refuses(422, "validation_failed")
		}
		for _, body := range []string{``, `{`, `{"anon_id":"a","anon_id":"a","user_id":"u"}`, `{"anon_id":"a","user_id":"u","x":{"y":1,"y":2}}`} {
			c.send(request{path: path, credential: c.server(), body: body}).refuses(400, "invalid_json")
		}
		c.send(request{path: path, credential: c.server(), body: `{"anon_id":"a","user_id":"u","unknown":[1]}`}).wants(202)
	}
	for _, rest := range []string{
		`"traits":[]`, `"traits":{"a":"\u0000"}`, `"context":7`, `"ts":7`, `"ts":"now"`, `"session_id":""`, `"session_id":7`,
	} {
		c.send(request{path: "/v1/identify", credential: c.server(), body: `{"anon_id":"a","user_id":"u",` + rest + `}`}).refuses(422, "validation_failed")
	}
	ts := time.Now().Format(time.RFC3339)
	c.send(request{path: "/v1/identify", credential: c.legacy(), body: `{"anon_id":"b","user_id":"u","session_id":"s","traits":null,"ts":"` + ts + `"}`}).wants(202)
}
