// Package record owns what travels along the path of an event: a record is
// one accepted request, or the part of it that was new, as the intake store
// keeps it and the event store reads it. The package encodes and decodes and
// never decides anything.
//
// Invariants:
//   - every item of a project's stream has a position; positions are dense,
//     start at 1 and never change;
//   - a record holds the items Position … Position+len(Items)-1;
//   - Received never decreases from one record to the next.
package record

import "fmt"

// KeyKind is the kind of the credential an item was sent with. It is part of
// an event's identity, so its values are stored and never renumbered.
type KeyKind uint8

// The kinds of ingest credentials.
const (
	KeyBrowser KeyKind = 1
	KeyServer  KeyKind = 2
	KeyLegacy  KeyKind = 3
)

// String returns the name used in the API: "browser", "server" or "legacy".
func (k KeyKind) String() string {
	switch k {
	case KeyBrowser:
		return "browser"
	case KeyServer:
		return "server"
	case KeyLegacy:
		return "legacy"
	default:
		return fmt.Sprintf("KeyKind(%d)", uint8(k))
	}
}

// ItemType says what an item does when it is stored.
type ItemType uint8

// The item types.
const (
	// ItemEvent adds one event row.
	ItemEvent ItemType = 1
	// ItemIdentify adds one event row named "identify", a link and traits.
	ItemIdentify ItemType = 2
	// ItemAlias adds a link and no row.
	ItemAlias ItemType = 3
	// ItemErase takes away everything of one person that has a lower position.
	// It carries exactly one of UserID and AnonID and is never claimed.
	ItemErase ItemType = 4
)

// TSStatus says how the stored time of an event came about.
type TSStatus uint8

// The statuses of an event's time.
const (
	// TSOK: the client's time, corrected for clock skew if there was any.
	TSOK TSStatus = 0
	// TSAbsent: the client sent none; the receipt time is stored.
	TSAbsent TSStatus = 1
	// TSClampedPast: too far in the past; the receipt time is stored and the
	// original kept.
	TSClampedPast TSStatus = 2
	// TSClampedFuture: too far in the future; likewise.
	TSClampedFuture TSStatus = 3
	// TSSkewCorrected: moved by the client's clock skew.
	TSSkewCorrected TSStatus = 4
)

// String returns the name used in the API.
func (s TSStatus) String() string {
	switch s {
	case TSOK:
		return "ok"
	case TSAbsent:
		return "absent"
	case TSClampedPast:
		return "clamped_past"
	case TSClampedFuture:
		return "clamped_future"
	case TSSkewCorrected:
		return "skew_corrected"
	default:
		return fmt.Sprintf("TSStatus(%d)", uint8(s))
	}
}

// Person names whom an erasure or an export is about. Exactly one id is set.
type Person struct {
	UserID string
	AnonID string
}

// Valid reports whether exactly one id is set.
func (p Person) Valid() bool { return (p.UserID == "") != (p.AnonID == "") }

// EventID is the 16 bytes of a UUID.
type EventID [16]byte

// Identity is what makes two items the same event: nothing else does.
type Identity struct {
	Project uint32
	KeyKind KeyKind
	EventID EventID
}

// Item is one thing to store.
type Item struct {
	Type    ItemType
	EventID EventID
	// Claimed says that the client chose EventID, so that a claim on it was
	// written with this item. Ids made by the server are not claimed.
	Claimed bool
	// Fingerprint is a short hash of the item without transport fields; two
	// items of one identity with different fingerprints conflict.
	Fingerprint uint32
	// ClientTS is the time as the client sent it, in milliseconds since 1970;
	// meaningful only if HasTS.
	ClientTS int64
	HasTS    bool
	// TS is the event's time, in milliseconds since 1970, and TSStatus says
	// how it came about. Both are set by Decode, which knows the receipt.
	TS       int64
	TSStatus TSStatus
	Event    string
	// AnonID, UserID and SessionID are empty when absent.
	AnonID    string
	UserID    string
	SessionID string
	// Properties, Context and Traits are JSON objects, or nil when absent.
	Properties []byte
	Context    []byte
	Traits     []byte
}

// Person returns whom an erasure is about.
func (it *Item) Person() Person { return Person{UserID: it.UserID, AnonID: it.AnonID} }

// Record is one request's accepted items.
type Record struct {
	// Position is the position of the first item.
	Position uint64
	// Received is the window time stamped by the sequencer, in milliseconds
	// since 1970.
	Received int64
	// Window is the deduplication window that was in force, in milliseconds.
	Window int64
	// Store is the identity of the data folder the record belongs to.
	Store   [16]byte
	Project uint32
	KeyKind KeyKind
	// Key is the number of the credential.
	Key int64
	// Clock is what the request said of its sender's clock.
	Clock Clock
	Items []Item
}

// Last returns the position of the record's last item.
func (r *Record) Last() uint64 { return r.Position + uint64(len(r.Items)) - 1 }
