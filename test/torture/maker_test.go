package torture_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

const (
	pathTrack    = "/v1/track"
	pathIdentify = "/v1/identify"
	pathAlias    = "/v1/alias"
)

// maker makes the requests of one sender. What it makes depends on its seed
// alone.
type maker struct {
	model *model
	rand  *rand.Rand
	seed  uint64
	// sender numbers the sender, of senders.
	sender, senders int
	kind            string
	made            int
	// ids is how many ids of its own the sender has used.
	ids int
	// recent are items it sent lately.
	recent []*item
}

func newMaker(m *model, seed uint64, sender, senders int) *maker {
	return &maker{
		model: m, rand: newRand(seed, uint64(sender)), seed: seed, sender: sender, senders: senders,
		kind: keyKinds[sender%len(keyKinds)],
	}
}

// keyKinds are the kinds of keys that send events.
var keyKinds = []string{"browser", "server", "legacy"}

func newRand(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream))
}

// batch makes the next request.
func (g *maker) batch() *batch {
	switch x := g.rand.IntN(100); {
	case x < 6:
		return g.identify()
	case x < 12 && g.kind != "browser":
		return g.alias()
	default:
		return g.track(g.size())
	}
}

func (g *maker) size() int {
	if g.rand.IntN(20) == 0 {
		return 1 + g.rand.IntN(250)
	}
	return 1 + g.rand.IntN(12)
}

func (g *maker) track(size int) *batch {
	b := &batch{path: pathTrack, kind: g.kind}
	for bytes := 0; len(b.items) < size && bytes < maxBatchBytes; {
		it := g.next(b.items)
		b.items = append(b.items, it)
		bytes += len(it.text)
	}
	g.recent = append(g.recent, b.items...)
	if extra := len(g.recent) - 500; extra > 0 {
		g.recent = g.recent[extra:]
	}
	g.encode(b)
	return b
}

// maxBatchBytes leaves room for one more item below the limit of a request.
const maxBatchBytes = 900 << 10

// encode writes the body of a batch of items, sometimes compressed.
func (g *maker) encode(b *batch) {
	texts := make([]string, len(b.items))
	for i, it := range b.items {
		texts[i] = string(it.text)
	}
	b.body = []byte(`{"events":[` + strings.Join(texts, ",") + `]}`)
	var out bytes.Buffer
	switch g.rand.IntN(8) {
	case 0:
		b.encoding = "gzip"
		w := gzip.NewWriter(&out)
		must(w.Write(b.body))
		must(0, w.Close())
	case 1:
		b.encoding = "zstd"
		w := must(zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1)))
		must(w.Write(b.body))
		must(0, w.Close())
	default:
		return
	}
	b.body = out.Bytes()
}

// must is for what cannot fail: writes to memory.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// next makes an item, or takes one that was sent before.
func (g *maker) next(siblings []*item) *item {
	switch x := g.rand.IntN(100); {
	case x < 8 && len(g.recent) > 0: // the same again
		return g.recent[g.rand.IntN(len(g.recent))]
	case x < 12 && len(siblings) > 0: // the same in one request
		return siblings[g.rand.IntN(len(siblings))]
	case x < 16 && g.ids > 0: // an id of its own, another item
		return g.withID(g.sender, g.rand.IntN(g.ids))
	case x < 30: // an id that a neighbour may be sending, perhaps with a key of another kind
		return g.withID(g.rand.IntN(g.senders), g.rand.IntN(g.ids+10))
	case x < 38:
		return g.without()
	case x < 44:
		return g.invalid()
	default:
		g.ids++
		return g.withID(g.sender, g.ids-1)
	}
}

// id returns the n-th id of a sender.
func (g *maker) id(sender, n int) uuid.UUID {
	h := fnv.New128a()
	for _, v := range []uint64{g.seed, uint64(sender), uint64(n)} {
		must(h.Write(binary.BigEndian.AppendUint64(nil, v)))
	}
	return uuid.UUID(h.Sum(nil))
}

// withID makes an item with an id, written in one of its forms.
func (g *maker) withID(sender, n int) *item {
	id := g.id(sender, n)
	it, members := g.plain()
	it.claim = g.model.claim(g.kind, id)
	form := id.String()
	switch g.rand.IntN(6) {
	case 0:
		form = strings.ToUpper(form)
	case 1:
		form = strings.ReplaceAll(form, "-", "")
	case 2:
		form = "{" + form + "}"
	case 3:
		form = "urn:uuid:" + form
	}
	members["event_id"] = form
	return g.finish(it, members)
}

// without makes an item without an id.
func (g *maker) without() *item {
	it, members := g.plain()
	if g.rand.IntN(2) == 0 {
		members["event_id"] = nil
	}
	return g.finish(it, members)
}

var eventNames = []string{"signed_up", "page view", "purchase", "Überweisung €", "identify"}

// plain makes a valid item but for its id.
func (g *maker) plain() (*item, map[string]any) {
	g.made++
	it := &item{name: fmt.Sprintf("item-%d-%d", g.sender, g.made), kind: g.kind, event: eventNames[g.rand.IntN(len(eventNames))]}
	members := map[string]any{"event": it.event, "session_id": it.name}
	if g.rand.IntN(3) > 0 {
		it.userID = fmt.Sprintf("user %d", g.rand.IntN(500))
		members["user_id"] = it.userID
	}
	if it.userID == "" || g.rand.IntN(2) == 0 {
		it.anonID = g.anonID(g.rand.IntN(400))
		members["anon_id"] = it.anonID
	}
	if g.rand.IntN(4) > 0 {
		properties := map[string]any{
			"n": g.made, "text": "a \"quoted\" \\ line\n\u2028é€😀", "list": []any{1, 2.5, nil, true},
			"pad": strings.Repeat("x", g.rand.IntN(300)),
		}
		if g.rand.IntN(200) == 0 {
			properties["pad"] = strings.Repeat("y", 50_000)
		}
		it.properties = must(json.Marshal(properties))
		members["properties"] = json.RawMessage(it.properties)
	}
	switch g.rand.IntN(4) {
	case 0:
		members["ts"] = time.Now().UTC().Format(time.RFC3339Nano)
	case 1:
		members["ts"] = time.Now().UnixMilli()
	}
	return it, members
}

func (g *maker) finish(it *item, members map[string]any) *item {
	it.text = must(json.Marshal(members))
	g.model.add(it)
	return it
}

// anonID is an anonymous person; identify or alias may link it to a user.
func (g *maker) anonID(n int) string { return fmt.Sprintf("anon %d", n) }

// identify makes a request of /v1/identify, which adds an event each time.
func (g *maker) identify() *batch {
	g.made++
	anonID := g.anonID(g.rand.IntN(400))
	link := g.model.link(anonID)
	it := &item{
		name: fmt.Sprintf("item-%d-%d", g.sender, g.made), kind: g.kind, event: "identify", anonID: anonID, userID: link.userID,
		properties: must(json.Marshal(map[string]any{"plan": g.made, "by": g.kind})),
	}
	g.finish(it, map[string]any{
		"anon_id": anonID, "user_id": link.userID, "session_id": it.name, "traits": json.RawMessage(it.properties),
	})
	return &batch{path: pathIdentify, kind: g.kind, items: []*item{it}, link: link, body: it.text}
}

func (g *maker) alias() *batch {
	anonID := g.anonID(g.rand.IntN(400))
	link := g.model.link(anonID)
	body := must(json.Marshal(map[string]string{"anon_id": anonID, "user_id": link.userID}))
	return &batch{path: pathAlias, kind: g.kind, link: link, body: body}
}

// faults are the ways to spoil an item, with the verdict on each.
var faults = []struct {
	code   string
	member string
	value  any
}{
	{"invalid_event", "event", nil},
	{"invalid_event", "event", " \t "},
	{"invalid_event", "event", strings.Repeat("e", 201)},
	{"invalid_event_id", "event_id", "50172"},
	{"invalid_event_id", "event_id", 42},
	{"invalid_event_id", "event_id", ""},
	{"invalid_event_id", "event_id", "00000000-0000-0000-0000-000000000000"},
	{"invalid_event_id", "event_id", " 0188b1f0-0000-7000-8000-000000000001 "},
	{"invalid_anon_id", "anon_id", 5},
	{"invalid_user_id", "user_id", ""},
	{"invalid_timestamp", "ts", "yesterday"},
	{"invalid_timestamp", "ts", 1_700_000_000},
	{"invalid_properties", "properties", []any{1}},
	{"invalid_context", "context", "none"},
	{"event_too_large", "padding", strings.Repeat("z", 64<<10)},
	{"missing_identity", "", nil},
}

// invalid makes an item that must be rejected. It carries an id that a valid
// item will use later: a rejection must not claim it.
func (g *maker) invalid() *item {
	it, members := g.plain()
	id := g.id(g.sender, g.ids).String()
	members["event_id"], it.echo = id, &id
	n := g.rand.IntN(len(faults))
	if faults[n].code == "event_too_large" && g.rand.IntN(20) > 0 {
		n = 0
	}
	f := faults[n]
	it.code = f.code
	switch f.member {
	case "":
		delete(members, "user_id")
		delete(members, "anon_id")
	case "event_id":
		members["event_id"], it.echo = f.value, nil
		if s, ok := f.value.(string); ok {
			it.echo = &s
		}
	default:
		members[f.member] = f.value
	}
	return g.finish(it, members)
}
