package eventstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/actionpulse/actionpulse/internal/record"
)

// setTraits adds one row for each trait. Rows are only ever added: a trait's
// value is that of its latest row by time, then position.
func (b *batch) setTraits(r *record.Record, it *record.Item, position uint64) error {
	if len(it.Traits) == 0 {
		return nil
	}
	a, err := b.lazily(&b.traits, traitAppender)
	if err != nil {
		return err
	}
	person := b.store.numbers.User(r.Project, it.UserID)
	return eachMember(it.Traits, func(name string, value []byte) error {
		a.Uint32(0, r.Project)
		a.Int64(1, person)
		a.Text(2, name)
		a.Text(3, text(value))
		a.Int64(4, it.TS)
		a.Int64(5, int64(position))
		return a.EndRow()
	})
}

// eachMember calls fn with each member of a JSON object and its raw value,
// which is valid during the call only.
func eachMember(object []byte, fn func(name string, value []byte) error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	token, err := dec.ReadToken()
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	if token.Kind() != '{' {
		return errors.New("read object: not an object")
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		member := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		if err := fn(member, value); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("read object: something follows it")
	}
	return nil
}
