package sdk

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
)

func beacons(c *conversation) {
	plain := http.Header{"Content-Type": {"text/plain;charset=UTF-8"}, "Origin": {"https://shop.example"}}
	at := func(key string) string { return "/v1/track?key=" + key }
	padding := strings.Repeat("x", 35<<10)
	body := func(n int) string {
		return items(fmt.Sprintf(`{"event":"e","anon_id":"a","event_id":"0197d6a4-5f0e-7cc2-9d33-%012d","properties":{"p":%q}}`, n, padding))
	}
	for n := range 2 {
		c.send(request{path: at(c.browser()), credential: noCredential, header: plain, body: body(n)}).wants(202).has("duplicates", "0")
	}
	for n := range 2 { // the same by fetch
		c.track(c.browser(), body(n)).wants(202).has("duplicates", "1")
	}
	c.send(request{path: at(c.server()), credential: noCredential, body: body(0)}).refuses(401, "unauthenticated")
	c.send(request{path: at("apb_nothing"), credential: noCredential, body: body(0)}).refuses(401, "unauthenticated")
	c.send(request{path: at(c.browser()) + "&key=" + c.browser(), credential: noCredential, body: body(0)}).refuses(401, "unauthenticated")
	c.send(request{path: "/v1/alias?key=" + c.browser(), credential: noCredential, body: `{}`}).refuses(403, "forbidden")
	c.send(request{method: http.MethodOptions, path: "/v1/track", credential: noCredential, header: http.Header{
		"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"POST"},
	}}).wants(204)
	c.send(request{method: http.MethodOptions, path: "/v1/customers"}).refuses(405, "method_not_allowed")
}

func media(c *conversation) {
	body := items(item(`"` + uuid1 + `"`))
	var coded bytes.Buffer
	w := gzip.NewWriter(&coded)
	if _, err := w.Write([]byte(body)); err != nil {
		c.Fatal(err)
	}
	if err := w.Close(); err != nil {
		c.Fatal(err)
	}
	send := func(body string, pairs ...string) *answer {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return c.send(request{path: "/v1/track", credential: c.server(), body: body, header: h})
	}
	send(coded.String(), "Content-Encoding", "gzip").wants(202).has("duplicates", "0")
	send(coded.String(), "Content-Encoding", "X-GZIP").wants(202).has("duplicates", "1")
	send(body, "Content-Encoding", "identity").wants(202)
	send(body, "Content-Type", "application/json; charset=utf-8").wants(202)
	send(body, "Content-Type", "Application/JSON").wants(202)
	send("no gzip", "Content-Encoding", "gzip").refuses(400, "invalid_json")
	send(coded.String()[:len(coded.String())/2], "Content-Encoding", "gzip").refuses(400, "invalid_json")
	for _, pairs := range [][]string{
		{"Content-Encoding", "br"},
		{"Content-Encoding", "gzip, gzip"},
		{"Content-Encoding", "gzip", "Content-Encoding", "gzip"},
		{"Content-Type", "application/xml"},
		{"Content-Type", "application/json; charset=latin1"},
		{"Content-Type", "application/json", "Content-Type", "application/json"},
		{"Content-Type", "/"},
	} {
		send(body, pairs...).refuses(415, "unsupported_media_type")
	}
	c.send(request{path: "/v1/customers/ada/topup", key: "k-12345678", body: `{}`, header: http.Header{"Content-Type": {"text/plain"}}}).
		refuses(415, "unsupported_media_type")
	send(strings.Repeat(" ", 1<<20)+body).refuses(413, "payload_too_large").has("error.details.limit_bytes", "1048576")
	coded.Reset()
	w.Reset(&coded)
	if _, err := w.Write(bytes.Repeat([]byte(" "), 2<<20)); err != nil {
		c.Fatal(err)
	}
	if err := w.Close(); err != nil {
		c.Fatal(err)
	}
	send(coded.String(), "Content-Encoding", "gzip").refuses(413, "payload_too_large")
	c.post("/v1/customers/ada/topup", "k-12345678", strings.Repeat(" ", 64<<10)+"{}").refuses(413, "payload_too_large").has("error.details.limit_bytes", "65536")
}
