package actionpulse

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/actionpulse/actionpulse/retry"
	"github.com/actionpulse/actionpulse/sdk/actionpulse/internal/outbox"
)

// The defaults of [TrackerOptions], and the limits of intake.
const (
	DefaultMaxBatch = 500
	DefaultMaxBytes = MaxBatchBytes
	DefaultMaxAge   = time.Second
	DefaultPause    = 5 * time.Minute
	DefaultTimeout  = 30 * time.Second
	// DefaultMaxPending and DefaultMaxPendingBytes bound an outbox in memory.
	DefaultMaxPending      = 100_000
	DefaultMaxPendingBytes = 64 << 20
	// MaxBatchItems and MaxBatchBytes are the largest request of intake,
	// MaxItemBytes is its largest item.
	MaxBatchItems = 1000
	MaxBatchBytes = 1 << 20
	MaxItemBytes  = 64 << 10
	// MaxKept is the age at which a record is given up: an hour before intake
	// would forget its id and store a repeat as a second event.
	MaxKept = 47 * time.Hour
)

// Sync says when a record in a folder is safe.
type Sync uint8

// The ways to write a folder.
const (
	// SyncAlways: Track returns when the record is on disk. It survives a
	// crash of the process and of the machine. Records tracked at the same
	// time share one sync.
	SyncAlways Sync = iota
	// SyncNever: Track returns when the operating system has the record. It
	// survives a crash of the process, kill -9 included; a crash of the machine
	// can lose what was tracked in the last half minute or so.
	SyncNever
)

// TrackerOptions are the settings of a [Tracker]. The zero value is an outbox
// in memory.
type TrackerOptions struct {
	// Dir is a folder for the outbox, which is made if it is not there; it
	// needs a local file system. Empty: records are kept in memory and end
	// with the process.
	Dir string
	// Project names what the folder's records are for, so that it is told
	// apart from another one on the same server and stays the same when the
	// server moves. Any text that does not change. Without it a folder belongs
	// to the server's URL; two projects there cannot be told apart.
	Project string
	Sync    Sync
	// MaxBatch is how many events are in a request, up to MaxBatchItems, and
	// MaxBytes how large its body is, up to MaxBatchBytes.
	MaxBatch int
	MaxBytes int
	// MaxAge is how long an event waits for others.
	MaxAge time.Duration
	// MaxPending and MaxPendingBytes bound the records that wait; beyond them
	// Track returns ErrOutboxFull. In a folder 0 is no bound.
	MaxPending      int
	MaxPendingBytes int64
	// Pause is how long sending rests when a repeat would not help or attempts
	// have run out.
	Pause time.Duration
	// Policy bounds the repeats of one request. Its clock is not used.
	Policy retry.Policy
	// HTTPClient makes the requests; its Timeout, or else DefaultTimeout, bounds
	// each of them. It is not changed, and follows no redirect here.
	HTTPClient *http.Client
	// UserAgent, as shop/1.4, comes before this package's own.
	UserAgent string
	// Logger hears what goes wrong; nil means slog.Default().
	Logger *slog.Logger
	// KeyKind is for a legacy key that looks like another; see KindOfKey.
	KeyKind KeyKind
	// OtherKeys are keys of other kinds, for records that the folder holds of
	// them.
	OtherKeys []string
	// Historical keeps any past time of an event. It needs a server key or a
	// legacy key. A record is then given up 47 hours after Track.
	Historical bool
	// CorrectSkew tells the server with each attempt what time it is here, so
	// that it corrects the times of a machine whose clock is wrong by more
	// than five minutes. It is the one thing that then differs between
	// attempts.
	CorrectSkew bool
	// OnRejected hears of each record that the server has judged and refused,
	// OnGaveUp of each that ends without a verdict, OnPaused of each new reason
	// for a pause. They are called one at a time, must not call Flush or
	// Close, and can hear of a record again after a crash.
	OnRejected func(Rejected)
	OnGaveUp   func(GaveUp)
	OnPaused   func(*PausedError)
	// Now is the wall clock and NewID makes ids; nil means time.Now and UUIDs
	// of version 7. Both are called by several goroutines.
	Now   func() time.Time
	NewID func() (string, error)
}

func (o TrackerOptions) withDefaults() TrackerOptions {
	setDefault(&o.MaxBatch, DefaultMaxBatch)
	setDefault(&o.MaxBytes, DefaultMaxBytes)
	setDefault(&o.MaxAge, DefaultMaxAge)
	setDefault(&o.Pause, DefaultPause)
	if o.Dir == "" {
		setDefault(&o.MaxPending, DefaultMaxPending)
		setDefault(&o.MaxPendingBytes, DefaultMaxPendingBytes)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = newEventID
	}
	return o
}

func setDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

func (o TrackerOptions) validate(kind KeyKind) error {
	switch {
	case o.MaxBatch < 1 || o.MaxBatch > MaxBatchItems:
		return fmt.Errorf("actionpulse: MaxBatch must be 1 to %d", MaxBatchItems)
	case o.MaxBytes < 1 || o.MaxBytes > MaxBatchBytes:
		return fmt.Errorf("actionpulse: MaxBytes must be 1 to %d", MaxBatchBytes)
	case o.MaxAge < 0, o.Pause < 0, o.MaxPending < 0, o.MaxPendingBytes < 0:
		return errors.New("actionpulse: MaxAge, Pause, MaxPending and MaxPendingBytes must not be negative")
	case o.Historical && kind == KeyBrowser:
		return errors.New("actionpulse: Historical needs a server key or a legacy key")
	default:
		return nil
	}
}

// client returns a copy of the caller's client, or a new one, that follows no
// redirect: it would change the request or take the key elsewhere. own says
// that its connections are nobody else's.
func (o TrackerOptions) client() (c *http.Client, own bool) {
	c = &http.Client{}
	if o.HTTPClient != nil {
		*c = *o.HTTPClient
	} else if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		c.Transport, own = standard.Clone(), true
	}
	setDefault(&c.Timeout, DefaultTimeout)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, own
}

func (o TrackerOptions) outbox(server string) outbox.Options {
	return outbox.Options{
		Dir: o.Dir, Server: server, Project: o.Project, Sync: outbox.Sync(o.Sync),
		MaxRecords: o.MaxPending, MaxBytes: o.MaxPendingBytes,
	}
}
