package intake

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	// debugItems is how many items of each verdict are kept of a project.
	debugItems = 100
	// debugRates bounds how many keys and SDKs are counted apart; what comes
	// later is counted together.
	debugRates = 200
	otherSDK   = "other"
)

// debugger remembers the latest items of each project. It is best effort: it
// lives in memory and forgets on restart.
type debugger struct {
	mu       sync.Mutex
	projects map[uint32]*projectDebug
}

type projectDebug struct {
	mu                                         sync.Mutex
	accepted, duplicate, conflicting, rejected ring
	rates                                      map[rateKey]*Counts
	// forgotten is the receipt time, in milliseconds since 1970, up to which
	// items are not remembered any more.
	forgotten int64
}

type rateKey struct {
	key  int64
	kind record.KeyKind
	sdk  string
}

// ring keeps the latest items.
type ring struct {
	items []api.DebugItem
	next  int
}

func (r *ring) add(it api.DebugItem) {
	if len(r.items) < debugItems {
		r.items = append(r.items, it)
		return
	}
	r.items[r.next] = it
	r.next = (r.next + 1) % debugItems
}

// latest returns the items, newest first.
func (r *ring) latest() []api.DebugItem {
	out := slices.Concat(r.items[r.next:], r.items[:r.next])
	slices.Reverse(out)
	return out
}

func newDebugger() *debugger { return &debugger{projects: map[uint32]*projectDebug{}} }

func (d *debugger) project(number uint32) *projectDebug {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.projects[number]
	if p == nil {
		p = &projectDebug{rates: map[rateKey]*Counts{}}
		d.projects[number] = p
	}
	return p
}

// track remembers the end of a batch and counts all of it.
func (d *debugger) track(src Source, b *batch, sub *submission, counts Counts) {
	p := d.project(src.Project)
	sdk := cmp.Or(b.library, src.UserAgent)
	sdk = strings.Clone(cutRunes(sdk, maxIDRunes))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(src, sdk, counts)
	if sub.received != 0 && sub.received <= p.forgotten {
		return
	}
	item := api.DebugItem{ReceivedAt: formatTime(sub.received), Key: src.Key, KeyKind: src.KeyKind.String(), SDK: sdk}
	for i := max(0, len(sub.items)-debugItems); i < len(sub.items); i++ {
		it := item
		it.EventID = new(uuid.UUID(sub.items[i].EventID).String())
		it.Event = strings.Clone(b.events[i])
		p.ring(sub.verdicts[i]).add(it)
	}
	for _, r := range b.rejected[max(0, len(b.rejected)-debugItems):] {
		it := item
		if sub.received == 0 {
			it.ReceivedAt = formatTime(time.Now().UnixMilli())
		}
		it.EventID, it.Code, it.Message = r.EventID, r.Code, r.Message
		p.rejected.add(it)
	}
}

// one remembers an identify or alias request.
func (d *debugger) one(src Source, it record.Item, received int64) {
	p := d.project(src.Project)
	sdk := strings.Clone(cutRunes(src.UserAgent, maxIDRunes))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(src, sdk, Counts{Accepted: 1})
	if received <= p.forgotten {
		return
	}
	name := "alias"
	if it.Type == record.ItemIdentify {
		name = EventIdentify
	}
	p.accepted.add(api.DebugItem{
		ReceivedAt: formatTime(received), Key: src.Key, KeyKind: src.KeyKind.String(), SDK: sdk,
		EventID: new(uuid.UUID(it.EventID).String()), Event: name,
	})
}

// forget drops the items of a project that were received up to a time, in
// milliseconds since 1970, also those that are about to be added. Whose an
// anonymous item is, only the event store knows, and a rejected one may be
// anybody's: so all of them go when one person is erased. The counts, which
// name nobody, stay.
func (d *debugger) forget(project uint32, through int64) {
	p := d.project(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten = max(p.forgotten, through)
	p.accepted, p.duplicate, p.conflicting, p.rejected = ring{}, ring{}, ring{}, ring{}
}

func (p *projectDebug) ring(v dedup.Verdict) *ring {
	switch v {
	case dedup.Duplicate:
		return &p.duplicate
	case dedup.Conflict:
		return &p.conflicting
	default:
		return &p.accepted
	}
}

func (p *projectDebug) count(src Source, sdk string, counts Counts) {
	key := rateKey{src.Key, src.KeyKind, sdk}
	c := p.rates[key]
	if c == nil && len(p.rates) >= debugRates {
		key.sdk = otherSDK
		c = p.rates[key]
	}
	if c == nil {
		c = &Counts{}
		p.rates[key] = c
	}
	c.Accepted += counts.Accepted
	c.Duplicates += counts.Duplicates
	c.Conflicting += counts.Conflicting
	c.Rejected += counts.Rejected
}

func (d *debugger) report(project uint32) api.IngestDebug {
	p := d.project(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	out := api.IngestDebug{
		Accepted: p.accepted.latest(), Duplicate: p.duplicate.latest(),
		Conflicting: p.conflicting.latest(), Rejected: p.rejected.latest(),
		Rates: []api.DebugRate{},
	}
	for k, c := range p.rates {
		rate := api.DebugRate{
			Key: k.key, KeyKind: k.kind.String(), SDK: k.sdk,
			Accepted: int64(c.Accepted), Duplicates: int64(c.Duplicates),
			Conflicting: int64(c.Conflicting), Rejected: int64(c.Rejected),
		}
		if c.Accepted > 0 {
			rate.DuplicateRate = float64(c.Duplicates) / float64(c.Accepted)
		}
		out.Rates = append(out.Rates, rate)
	}
	slices.SortFunc(out.Rates, func(a, b api.DebugRate) int {
		return cmp.Or(cmp.Compare(b.Accepted, a.Accepted), cmp.Compare(a.Key, b.Key), cmp.Compare(a.SDK, b.SDK))
	})
	return out
}

// library returns what a context says of the SDK: context.library, or its
// name and version.
func (p *parser) library(context []byte) string {
	if context == nil {
		return ""
	}
	library, ok := p.member(context, "library")
	if !ok {
		return ""
	}
	if text, ok := p.text(library); ok {
		return text
	}
	if library.Kind() != '{' {
		return ""
	}
	var parts []string
	for _, name := range []string{"name", "version"} {
		if value, ok := p.member(library, name); ok {
			if text, ok := p.text(value); ok {
				parts = append(parts, text)
			}
		}
	}
	return strings.Join(parts, "/")
}

// member finds a member of a valid object.
func (p *parser) member(object jsontext.Value, name string) (jsontext.Value, bool) {
	p.resetInner(object)
	if _, err := p.inner.ReadToken(); err != nil {
		return nil, false
	}
	for p.inner.PeekKind() == '"' {
		key, err := readWithin(&p.inner, object)
		if err != nil {
			return nil, false
		}
		value, err := readWithin(&p.inner, object)
		if err != nil {
			return nil, false
		}
		if text, ok := p.text(key); ok && text == name {
			return value, true
		}
	}
	return nil, false
}

func cutRunes(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit])
}

func formatTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
