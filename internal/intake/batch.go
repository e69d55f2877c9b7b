package intake

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

// maxItems bounds a batch.
const maxItems = 1000

// batch is a decoded request of /v1/track.
type batch struct {
	clock    record.Clock
	items    []intakestore.Item
	rejected []api.Rejection
	// events are the names of the accepted items, and library what the first
	// context says of the SDK, for the ingest debugger.
	events  []string
	library string
}

// batch reads a request of /v1/track. It judges every item, encodes the valid
// ones and collects the others as rejected.
func (p *parser) batch(body []byte) (*batch, error) {
	b := &batch{}
	seen, size := false, 0
	var invalid error // a fault of validation is reported only if the rest is JSON
	err := p.members(body, func(name string, dec *jsontext.Decoder) error {
		var err error
		switch name {
		case "events":
			seen = true
			size, err = p.events(dec, b)
		case "sent_at":
			err = p.sentAt(dec, b, &invalid)
		case "historical":
			err = p.historical(dec, b, &invalid)
		default:
			_, err = p.value(dec)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case invalid != nil:
		return nil, invalid
	case !seen:
		return nil, fault.Field("events", "events is required")
	case size == notArray:
		return nil, fault.Field("events", "events must be an array")
	case size == 0 || size > maxItems:
		return nil, fault.Field("events", "events must hold 1 to %d items, not %d", maxItems, size)
	}
	return b, nil
}

// notArray is the size of an events member that is something else.
const notArray = -1

// events judges the items of the array and returns how many there are.
func (p *parser) events(dec *jsontext.Decoder, b *batch) (int, error) {
	b.items, b.rejected, b.events, p.encoded = nil, []api.Rejection{}, nil, p.encoded[:0]
	if dec.PeekKind() != '[' {
		_, err := p.value(dec)
		return notArray, err
	}
	if _, err := dec.ReadToken(); err != nil {
		return 0, err
	}
	size := 0
	for dec.PeekKind() != ']' {
		raw, err := dec.ReadValue()
		if err != nil {
			return 0, err
		}
		if size < maxItems {
			p.take(b, size, raw)
		}
		size++
	}
	if _, err := dec.ReadToken(); err != nil {
		return 0, err
	}
	return size, nil
}

// take judges one item and adds it to the batch.
func (p *parser) take(b *batch, index int, raw jsontext.Value) {
	it, rejection := p.item(raw)
	if rejection != nil {
		rejection.Index = index
		b.rejected = append(b.rejected, *rejection)
		return
	}
	if !it.Claimed {
		it.EventID = newEventID()
	}
	if b.items == nil {
		b.library = p.library(it.Context)
	}
	start := len(p.encoded)
	p.encoded = record.AppendItem(p.encoded, &it)
	b.items = append(b.items, intakestore.Item{
		EventID: it.EventID, Fingerprint: it.Fingerprint, Claimed: it.Claimed,
		Encoded: p.encoded[start:len(p.encoded):len(p.encoded)],
	})
	b.events = append(b.events, it.Event)
}

func (p *parser) sentAt(dec *jsontext.Decoder, b *batch, invalid *error) error {
	value, err := p.value(dec)
	if err != nil || value.Kind() == 'n' {
		return err
	}
	if b.clock.SentAt, b.clock.HasSentAt = p.parseTime(value); !b.clock.HasSentAt {
		*invalid = fault.Field("sent_at", "sent_at must be a time in RFC 3339 or integer milliseconds since 1970")
	}
	return nil
}

func (p *parser) historical(dec *jsontext.Decoder, b *batch, invalid *error) error {
	value, err := p.value(dec)
	if err != nil {
		return err
	}
	switch value.Kind() {
	case 't':
		b.clock.Historical = true
	case 'f', 'n':
	default:
		*invalid = fault.Field("historical", "historical must be true or false")
	}
	return nil
}
