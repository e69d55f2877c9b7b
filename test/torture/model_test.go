package torture_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// item is one item as it was written once. Its name, sent as its session_id,
// tells it from every other item; a repeat of the very same item keeps it.
type item struct {
	name string
	kind string
	// claim is nil if the item has no event_id.
	claim *claim
	// code is why intake must reject the item; empty if it must accept it.
	code string
	// echo is the event_id that a rejection repeats; nil if none.
	echo *string
	text []byte

	event, anonID, userID string
	properties            []byte

	// deliveries is how often the item may have come to the server, acks how
	// often it was accepted.
	deliveries, acks int
}

// claim is one identity: an id sent with one kind of key.
type claim struct {
	id   uuid.UUID
	kind string
	// candidates are the items that may be the one stored: those sent before
	// any was acknowledged.
	candidates []*item
	// deliveries counts requests that held the id and may have come to the
	// server.
	deliveries int
	acked      bool
}

// link is a user to whom an anon_id belongs. The harness never links an
// anon_id to two users.
type link struct {
	userID      string
	sent, acked bool
}

// batch is one request.
type batch struct {
	number int
	path   string
	kind   string
	items  []*item
	link   *link
	body   []byte
	// encoding is the Content-Encoding of body.
	encoding string
	// deliveries is how often the request may have come to the server.
	deliveries int
}

type claimKey struct {
	kind string
	id   uuid.UUID
}

// model knows what was sent and what was acknowledged.
type model struct {
	mu      sync.Mutex
	claims  map[claimKey]*claim
	items   map[string]*item
	links   map[string]*link
	batches map[int]*batch
	counts  counts
	// changed is closed and made anew at each answer of the server.
	changed chan struct{}
}

// counts are for the progress line.
type counts struct {
	requests, accepted, duplicates, rejected, abandoned int
	// refused are requests that the server refused, by its reason.
	refused map[string]int
}

func newModel() *model {
	return &model{
		claims: map[claimKey]*claim{}, items: map[string]*item{}, links: map[string]*link{},
		batches: map[int]*batch{}, counts: counts{refused: map[string]int{}}, changed: make(chan struct{}),
	}
}

// claim returns the claim of an identity.
func (m *model) claim(kind string, id uuid.UUID) *claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := claimKey{kind, id}
	if m.claims[key] == nil {
		m.claims[key] = &claim{id: id, kind: kind}
	}
	return m.claims[key]
}

// link returns the link of an anon_id, which is always to the same user.
func (m *model) link(anonID string) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.links[anonID] == nil {
		m.links[anonID] = &link{userID: "user-of-" + anonID}
	}
	return m.links[anonID]
}

// add makes an item known.
func (m *model) add(it *item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items[it.name] = it
}

// begin notes that a request is about to be sent and numbers it. It returns
// the least number of duplicates that an acknowledgement must report.
func (m *model) begin(b *batch) (least int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.number == 0 {
		b.number = len(m.batches) + 1
		m.batches[b.number] = b
	}
	if b.link != nil {
		b.link.sent = true
	}
	seen := map[*claim]bool{}
	for _, it := range b.items {
		if it.code != "" || it.claim == nil {
			continue
		}
		c := it.claim
		switch {
		case seen[c] || c.acked:
			least++
		default:
			c.addCandidate(it)
		}
		seen[c] = true
	}
	return least
}

func (c *claim) addCandidate(it *item) {
	if !slices.Contains(c.candidates, it) {
		c.candidates = append(c.candidates, it)
	}
}

// deliver notes that a request is on its way to the server.
func (m *model) deliver(number int) { m.count(number, 1) }

// refuse takes a delivery back: the server said why it accepted nothing.
func (m *model) refuse(number int, why string) {
	m.count(number, -1)
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := maps.Clone(m.counts.refused) // readers hold the old one
	counts[why]++
	m.counts.refused = counts
	m.wake()
}

func (m *model) count(number, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.batches[number]
	b.deliveries += by
	seen := map[*claim]bool{}
	for _, it := range b.items {
		it.deliveries += by
		if it.claim != nil && !seen[it.claim] {
			seen[it.claim] = true
			it.claim.deliveries += by
		}
	}
}

// trackAnswer is the body of a 202 of /v1/track.
type trackAnswer struct {
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
	Rejected   []struct {
		Index   int     `json:"index"`
		EventID *string `json:"event_id"`
		Code    string  `json:"code"`
	} `json:"rejected"`
}

// acknowledge notes a 202 and says what is wrong with it.
func (m *model) acknowledge(b *batch, least int, a trackAnswer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.requests++
	if b.link != nil {
		b.link.acked = true
	}
	most, err := b.expect(a)
	if b.path == pathTrack && err == nil && (a.Duplicates < least || a.Duplicates > most) {
		err = fmt.Errorf("request %d: %d duplicates, want %d to %d", b.number, a.Duplicates, least, most)
	}
	for _, it := range b.items {
		if it.code != "" {
			continue
		}
		it.acks++
		if it.claim != nil {
			it.claim.acked = true
		}
	}
	m.counts.accepted += a.Accepted
	m.counts.duplicates += a.Duplicates
	m.counts.rejected += len(a.Rejected)
	m.wake()
	return err
}

func (m *model) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// expect compares an answer with the items that must be rejected, and returns
// how many duplicates there may be at most.
func (b *batch) expect(a trackAnswer) (most int, err error) {
	valid, rejected := 0, 0
	seen := map[*claim]bool{}
	for i, it := range b.items {
		if it.code != "" {
			if rejected >= len(a.Rejected) || a.Rejected[rejected].Index != i || a.Rejected[rejected].Code != it.code ||
				!equalText(a.Rejected[rejected].EventID, it.echo) {
				return 0, fmt.Errorf("request %d: item %d is not rejected as %s: %+v, sent %s", b.number, i, it.code, a.Rejected, it.text)
			}
			rejected++
			continue
		}
		valid++
		if it.claim != nil && (seen[it.claim] || it.claim.deliveries > 1) {
			most++
		}
		seen[it.claim] = true
	}
	if b.path == pathTrack && (a.Accepted != valid || len(a.Rejected) != rejected) {
		return 0, fmt.Errorf("request %d: %+v, want %d accepted and %d rejected", b.number, a, valid, rejected)
	}
	return most, nil
}

func equalText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// abandon notes that a request was given up with its outcome unknown.
func (m *model) abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.abandoned++
}

// progress returns the counts and a channel that is closed at the next answer.
func (m *model) progress() (counts, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts, m.changed
}

// acknowledged returns an item of every acknowledged claim.
func (m *model) acknowledged() []*item {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*item, 0, len(m.claims))
	for _, c := range m.claims {
		if c.acked {
			list = append(list, c.candidates[0])
		}
	}
	return list
}
