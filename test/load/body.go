package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// people is how many persons the events are of.
	people = 200_000
	// spread is how far back the events' times lie, within what intake keeps.
	spread = 40 * time.Hour
	// idSize and userDigits are the sizes of what is written anew each time.
	idSize     = 36
	userDigits = 7
)

// names are the events, with the share of each in a hundred.
var names = []struct {
	name  string
	share int
}{{"product_view", 70}, {"add_to_cart", 20}, {"checkout", 7}, {"purchase", 3}}

// request is a prepared request of /v1/track, headers and all. Before it is
// sent again, renew makes its events new ones at the cost of a few bytes each.
type request struct {
	bytes []byte
	// head is where the body begins.
	head   int
	ids    []int
	users  []int
	source *rand.Rand
}

// requestParams say what to prepare.
type requestParams struct {
	Host   string
	Key    string
	Events int
	Seed   uint64
	Now    time.Time
}

// newRequest prepares a request.
func newRequest(p requestParams) *request {
	r := &request{source: rand.New(rand.NewPCG(p.Seed, p.Seed))}
	var body bytes.Buffer
	body.WriteString(`{"events":[`)
	for i := range p.Events {
		if i > 0 {
			body.WriteByte(',')
		}
		r.event(&body, p.Now)
	}
	body.WriteString(`]}`)
	head := header(p.Host, p.Key, body.Len())
	r.head = len(head)
	for i := range r.ids {
		r.ids[i] += len(head)
		r.users[i] += len(head)
	}
	r.bytes = slices.Concat(head, body.Bytes())
	r.renew()
	return r
}

// header returns the head of a request that has a body of some size.
func header(host, key string, size int) []byte {
	return fmt.Appendf(nil, "POST /v1/track HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"User-Agent: load\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", host, key, size)
}

// event writes an event like those a web shop sends.
func (r *request) event(b *bytes.Buffer, now time.Time) {
	platforms := []string{"desktop", "phone", "tablet"}
	channels := []string{"email", "search", "social", "direct", "referral"}
	b.WriteString(`{"event_id":"`)
	r.ids = append(r.ids, b.Len())
	b.WriteString("00000000-0000-4000-8000-000000000000")
	fmt.Fprintf(b, `","event":%q,"user_id":"user_`, r.name())
	r.users = append(r.users, b.Len())
	at := now.Add(-time.Duration(r.source.Int64N(int64(spread)))).UTC()
	fmt.Fprintf(b, `0000000","session_id":"sess_%06d","ts":%q,"properties":{"platform":%q,"channel":%q,"price":%d.%02d,"position":%d}}`,
		r.source.IntN(1_000_000), at.Format("2006-01-02T15:04:05.000Z"), platforms[r.source.IntN(len(platforms))],
		channels[r.source.IntN(len(channels))], r.source.IntN(500), r.source.IntN(100), r.source.IntN(50))
}

func (r *request) name() string {
	n := r.source.IntN(100)
	for _, of := range names {
		if n -= of.share; n < 0 {
			return of.name
		}
	}
	return names[0].name
}

// body returns the request's body, which renew changes.
func (r *request) body() []byte { return r.bytes[r.head:] }

// events returns how many events the request has.
func (r *request) events() int { return len(r.ids) }

// renew gives every event a new random id and a random person.
func (r *request) renew() {
	for i := range r.ids {
		var id [16]byte
		binary.LittleEndian.PutUint64(id[:8], r.source.Uint64())
		binary.LittleEndian.PutUint64(id[8:], r.source.Uint64())
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		putUUID(r.bytes[r.ids[i]:r.ids[i]+idSize], id)
		user := r.source.IntN(people)
		for at := r.users[i] + userDigits - 1; at >= r.users[i]; at-- {
			r.bytes[at] = byte('0' + user%10)
			user /= 10
		}
	}
}

func putUUID(dst []byte, id [16]byte) {
	hex.Encode(dst[0:8], id[0:4])
	hex.Encode(dst[9:13], id[4:6])
	hex.Encode(dst[14:18], id[6:8])
	hex.Encode(dst[19:23], id[8:10])
	hex.Encode(dst[24:36], id[10:16])
}
