package intake

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/fault"
	"github.com/actionpulse/actionpulse/internal/record"
)

// EventIdentify is the name of the event that identify adds.
const EventIdentify = "identify"

// identify reads a request of /v1/identify. Its strings share body.
func (p *parser) identify(body []byte) (record.Item, error) {
	f, traits, err := p.person(body)
	if err != nil {
		return record.Item{}, err
	}
	it, err := p.link(f)
	if err != nil {
		return it, err
	}
	it.Type, it.Event = record.ItemIdentify, EventIdentify
	var ok bool
	if it.SessionID, ok = p.id(f.sessionID); !ok {
		return it, idFault("session_id")
	}
	if f.ts != nil {
		if it.ClientTS, it.HasTS = p.parseTime(f.ts); !it.HasTS {
			return it, fault.Field("ts", "ts must be a time in RFC 3339 or integer milliseconds since 1970")
		}
	}
	traitsHash, err := p.object(traits)
	if err != nil {
		return it, fault.Field("traits", "traits %s", err)
	}
	contextHash, err := p.object(f.context)
	if err != nil {
		return it, fault.Field("context", "context %s", err)
	}
	it.Traits, it.Context = traits, f.context
	it.Fingerprint = fingerprint(&it, traitsHash, contextHash)
	return it, nil
}

// alias reads a request of /v1/alias. Its strings share body.
func (p *parser) alias(body []byte) (record.Item, error) {
	f, _, err := p.person(body)
	if err != nil {
		return record.Item{}, err
	}
	it, err := p.link(f)
	it.Type = record.ItemAlias
	return it, err
}

// person reads the members of a request about a person.
func (p *parser) person(body []byte) (f fields, traits jsontext.Value, err error) {
	err = p.members(body, func(name string, dec *jsontext.Decoder) error {
		value, err := p.value(dec)
		if err != nil || value.Kind() == 'n' {
			return err
		}
		value = value.Clone() // the decoder moves on
		if name == "traits" {
			traits = value
			return nil
		}
		f.set(jsontext.Value(`"`+name+`"`), value)
		return nil
	})
	return f, traits, err
}

func (p *parser) link(f fields) (record.Item, error) {
	it := record.Item{EventID: newEventID()}
	var ok bool
	if it.AnonID, ok = p.id(f.anonID); !ok || it.AnonID == "" {
		return it, idFault("anon_id")
	}
	if it.UserID, ok = p.id(f.userID); !ok || it.UserID == "" {
		return it, idFault("user_id")
	}
	return it, nil
}

func idFault(name string) error {
	return fault.Field(name, "%s must be a string of 1 to %d characters", name, maxIDRunes)
}
