package record_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/record"
)

func drawItem(t *rapid.T) record.Item {
	object := rapid.SampledFrom([][]byte{nil, []byte(`{}`), []byte(`{"a":[1,2,{"b":null}]}`)})
	it := record.Item{
		Type:        rapid.SampledFrom([]record.ItemType{record.ItemEvent, record.ItemIdentify, record.ItemAlias}).Draw(t, "type"),
		Claimed:     rapid.Bool().Draw(t, "claimed"),
		Fingerprint: rapid.Uint32().Draw(t, "fingerprint"),
		HasTS:       rapid.Bool().Draw(t, "has ts"),
		Event:       rapid.String().Draw(t, "event"),
		AnonID:      rapid.String().Draw(t, "anon"),
		UserID:      rapid.String().Draw(t, "user"),
		SessionID:   rapid.String().Draw(t, "session"),
		Properties:  object.Draw(t, "properties"),
		Context:     object.Draw(t, "context"),
		Traits:      object.Draw(t, "traits"),
	}
	if it.HasTS {
		it.ClientTS = rapid.Int64Range(-1e14, 1e14).Draw(t, "ts")
	}
	copy(it.EventID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	if rapid.IntRange(0, 9).Draw(t, "erase") == 0 {
		it.Type, it.Claimed = record.ItemErase, false
		it.AnonID, it.UserID = rapid.SampledFrom([]string{"", "x"}).Draw(t, "erased"), ""
		if it.AnonID == "" {
			it.UserID = "u"
		}
	}
	return it
}

func drawRecord(t *rapid.T) record.Record {
	r := record.Record{
		Position: rapid.Uint64Min(1).Draw(t, "position"),
		Received: rapid.Int64Range(0, 1e14).Draw(t, "received"),
		Window:   rapid.Int64Range(0, 1e12).Draw(t, "window"),
		Project:  rapid.Uint32Min(1).Draw(t, "project"),
		KeyKind:  rapid.SampledFrom([]record.KeyKind{record.KeyBrowser, record.KeyServer, record.KeyLegacy}).Draw(t, "kind"),
		Key:      rapid.Int64Min(1).Draw(t, "key"),
		Clock:    record.Clock{HasSentAt: rapid.Bool().Draw(t, "has sent"), Historical: rapid.Bool().Draw(t, "historical")},
		Items:    rapid.SliceOfN(rapid.Custom(drawItem), 1, 5).Draw(t, "items"),
	}
	if r.Clock.HasSentAt {
		r.Clock.SentAt = rapid.Int64Range(-1e14, 1e14).Draw(t, "sent")
	}
	for i := range r.Items {
		it := &r.Items[i]
		it.TS, it.TSStatus = r.Clock.Resolve(it.ClientTS, it.HasTS, r.Received)
	}
	return r
}

func TestDecodeReturnsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRecord(t)
		value := record.Append(nil, &want)
		items := len(value) - len(record.AppendHeader(nil, &want, len(want.Items)))
		for i := range want.Items {
			items -= record.EncodedSize(&want.Items[i])
		}
		if items != 0 {
			t.Fatalf("%d bytes more than the items' sizes", items)
		}
		got, err := record.Decode(want.Position, value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		cut := rapid.IntRange(0, len(value)-1).Draw(t, "cut")
		if _, err := record.Decode(want.Position, value[:cut]); err == nil {
			t.Fatalf("a record cut at %d of %d bytes was read", cut, len(value))
		}
	})
}

// A version 1 record is read as it was; it knows no erasures, and a program
// that knows nothing else refuses version 2 by its first byte.
func TestVersions(t *testing.T) {
	r := record.Record{Position: 1, Items: []record.Item{{Type: record.ItemEvent, Event: "a"}}}
	value := record.Append(nil, &r)
	if value[0] != 2 {
		t.Fatalf("version %d is written", value[0])
	}
	for version, ok := range map[byte]bool{0: false, 1: true, 2: true, 3: false} {
		value[0] = version
		if _, err := record.Decode(1, value); (err == nil) != ok {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestAnErasureNamesOnePersonAndClaimsNothing(t *testing.T) {
	tests := map[string]struct {
		item    record.Item
		version byte
		ok      bool
	}{
		"user":           {record.Item{UserID: "u"}, 2, true},
		"anon":           {record.Item{AnonID: "a"}, 2, true},
		"both":           {record.Item{UserID: "u", AnonID: "a"}, 2, false},
		"nobody":         {record.Item{}, 2, false},
		"claimed":        {record.Item{UserID: "u", Claimed: true}, 2, false},
		"in version one": {record.Item{UserID: "u"}, 1, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.item.Type = record.ItemErase
			value := record.Append(nil, &record.Record{Items: []record.Item{tt.item}})
			value[0] = tt.version
			if _, err := record.Decode(1, value); errors.Is(err, record.ErrMalformed) == tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	r := record.Record{Position: 1, Items: []record.Item{{Type: record.ItemEvent, Event: "a"}}}
	f.Add(record.Append(nil, &r))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := record.Decode(1, value)
		if err != nil {
			return
		}
		again, err := record.Decode(1, record.Append(nil, &r))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestResolveTime(t *testing.T) {
	received := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC).UnixMilli()
	at := func(d time.Duration) int64 { return received + d.Milliseconds() }
	sent := func(d time.Duration) record.Clock { return record.Clock{SentAt: at(d), HasSentAt: true} }
	historical := record.Clock{Historical: true}
	tests := []struct {
		name   string
		clock  record.Clock
		client time.Duration
		want   time.Duration
		status record.TSStatus
	}{
		{"now", record.Clock{}, 0, 0, record.TSOK},
		{"48 h ago exactly", record.Clock{}, -48 * time.Hour, -48 * time.Hour, record.TSOK},
		{"48 h and 1 ms ago", record.Clock{}, -48*time.Hour - time.Millisecond, 0, record.TSClampedPast},
		{"5 min ahead exactly", record.Clock{}, 5 * time.Minute, 5 * time.Minute, record.TSOK},
		{"5 min and 1 ms ahead", record.Clock{}, 5*time.Minute + time.Millisecond, 0, record.TSClampedFuture},
		{"23 h ahead", record.Clock{}, 23 * time.Hour, 0, record.TSClampedFuture},
		{"transit of 30 s is not skew", sent(-30 * time.Second), -31 * time.Second, -31 * time.Second, record.TSOK},
		{"transit of 5 min is not skew", sent(-5 * time.Minute), -6 * time.Minute, -6 * time.Minute, record.TSOK},
		{"a clock 7 days behind", sent(-168 * time.Hour), -169 * time.Hour, -time.Hour, record.TSSkewCorrected},
		{"a clock 7 days ahead", sent(168 * time.Hour), 167 * time.Hour, -time.Hour, record.TSSkewCorrected},
		{"skew, then too old", sent(-168 * time.Hour), -240 * time.Hour, 0, record.TSClampedPast},
		{"7 years ago", record.Clock{}, -7 * 365 * 24 * time.Hour, 0, record.TSClampedPast},
		{"7 years ago, historical", historical, -7 * 365 * 24 * time.Hour, -7 * 365 * 24 * time.Hour, record.TSOK},
		{"historical, in the future", historical, time.Hour, 0, record.TSClampedFuture},
		{"historical applies no skew", record.Clock{SentAt: at(-168 * time.Hour), HasSentAt: true, Historical: true}, -169 * time.Hour, -169 * time.Hour, record.TSOK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ts, status := tt.clock.Resolve(at(tt.client), true, received)
			if ts != at(tt.want) || status != tt.status {
				t.Errorf("got %v %v, want %v %v", time.Duration(ts-received)*time.Millisecond, status, tt.want, tt.status)
			}
		})
	}
	if ts, status := (record.Clock{}).Resolve(0, false, received); ts != received || status != record.TSAbsent {
		t.Errorf("absent: got %d %v", ts, status)
	}
}
