package sendfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/sendfile"
)

// FuzzReader: whatever the input holds, every item that is sent is JSON in
// UTF-8 within the limit, so that it cannot spoil a request; objects have an
// id; and reading the same again gives the same.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", "event,user_id\na,u\n", "event,user_id,ts\na,\"u\n\",1710325274000\n", "{}\n{\"event_id\":null}\n[1]\n",
		"{\"a\":1,\"event_id\":\"x\"}\n{\"\\u0065vent_id\":\"y\"}", "\xef\xbb\xbfevent,user_id,\xff\n", "\x1f\x8b\b\x00", "event,user_id,a\n\xff,u,\x00\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		items, err := readAll(bytes.NewReader(in), sendfile.Options{})
		again, err2 := readAll(bytes.NewReader(in), sendfile.Options{})
		if (err == nil) != (err2 == nil) || len(items) != len(again) {
			t.Fatalf("%d items, %v; then %d, %v", len(items), err, len(again), err2)
		}
		for i, item := range items {
			if item.Code == "" {
				checkSendable(t, item)
			}
			if string(item.JSON) != string(again[i].JSON) || item.EventID != again[i].EventID {
				t.Fatalf("%+v, then %+v", item, again[i])
			}
		}
		if err != nil && !isTyped(err) {
			t.Fatalf("an error of no type: %v", err)
		}
	})
}

func isTyped(err error) bool {
	_, input := errors.AsType[*sendfile.InputError](err)
	_, setup := errors.AsType[*sendfile.SetupError](err)
	return input || setup
}

func checkSendable(t *testing.T, item sendfile.Item) {
	t.Helper()
	if !json.Valid(item.JSON) || !utf8.Valid(item.JSON) || len(item.JSON) > sendfile.MaxItem {
		t.Fatalf("line %d: %q", item.Line, item.JSON)
	}
	if item.JSON[0] != '{' || bytes.Count(item.JSON, []byte("event_id")) > 1 {
		return // not an item, or one whose id is given twice: the server rejects it
	}
	var object map[string]any
	if err := json.Unmarshal(item.JSON, &object); err != nil {
		t.Fatalf("line %d: %v", item.Line, err)
	}
	if object["event_id"] == nil {
		t.Fatalf("line %d has no id: %s", item.Line, item.JSON)
	}
	if uuid.Validate(item.EventID) == nil && object["event_id"] != item.EventID {
		t.Fatalf("line %d has id %v, not %s", item.Line, object["event_id"], item.EventID)
	}
}
