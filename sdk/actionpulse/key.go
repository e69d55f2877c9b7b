package actionpulse

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxKey is how many characters, Unicode code points, an Idempotency-Key may
// have.
const MaxKey = 190

// The bounds of the key of a deploy marker, in bytes.
const (
	minDeployKey = 8
	maxDeployKey = 128
)

// KeyOption names the unit of work that a call asks for.
type KeyOption func(*keyChoice)

type keyChoice struct {
	key   string
	given bool
}

// WithKey names the unit of work: order-42:email, or the id of a queue's job.
// Calls with one key and one request do the work once, whoever makes them and
// whenever. Without this option a key is minted for each call, which protects
// that call and its repeats within this package, and nothing that its caller
// repeats.
//
// The key is checked before anything is sent, see [CheckKey]; a deploy marker
// demands 8 to 128 visible ASCII characters and no comma.
func WithKey(key string) KeyOption {
	return func(c *keyChoice) { c.key, c.given = key, true }
}

// NewKey makes a key for one unit of work: a UUIDv7. Keep it where the fact is
// kept, before the first attempt: a key that is made anew for each attempt
// protects that attempt only.
func NewKey() string { return uuid.Must(uuid.NewV7()).String() }

// key returns the key that the options choose, or a new one.
func (l *link) keyOf(options []KeyOption, check func(string) error) (string, error) {
	var c keyChoice
	for _, o := range options {
		o(&c)
	}
	if !c.given {
		return l.newKey(), nil
	}
	return c.key, check(c.key)
}

// CheckKey says what is wrong with an Idempotency-Key for Execute, TopUp,
// Charge and Adjust: it has 1 to 190 characters, is UTF-8 without control
// characters, is not blank, and neither begins nor ends with a blank, which
// HTTP would cut off so that another key arrived. The error does not repeat
// the key.
func CheckKey(key string) error {
	switch n := utf8.RuneCountInString(key); {
	case strings.TrimSpace(key) == "":
		return errors.New("the Idempotency-Key is blank")
	case !utf8.ValidString(key):
		return errors.New("the Idempotency-Key is not UTF-8")
	case n > MaxKey:
		return fmt.Errorf("the Idempotency-Key has %d characters, %d are allowed", n, MaxKey)
	case strings.ContainsFunc(key, unicode.IsControl):
		return errors.New("the Idempotency-Key holds a control character")
	case strings.Trim(key, " ") != key:
		return errors.New("the Idempotency-Key begins or ends with a blank, which HTTP would cut off")
	}
	return nil
}

// CheckDeployKey says what is wrong with the Idempotency-Key of a deploy
// marker: it has 8 to 128 characters of ! to ~ and no comma.
func CheckDeployKey(key string) error {
	if n := len(key); n < minDeployKey || n > maxDeployKey {
		return fmt.Errorf("the Idempotency-Key of a deploy marker has %d characters, %d to %d are allowed", n, minDeployKey, maxDeployKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' || r == ',' }) {
		return errors.New("the Idempotency-Key of a deploy marker holds only visible ASCII characters, and no comma")
	}
	return nil
}

// KeyFromRiver is the key of what a job of River does: river:42:email. River
// keeps a job's id over all its attempts, snoozes and manual retries, so that
// each attempt carries the same key. purpose tells apart several units of work
// of one job; it may be empty. Ids are those of one database: if jobs of two
// databases act on one project, put the database's name into purpose. A job
// that is inserted again has another id: where that can happen, take the key
// from the fact (order-42:email) instead.
func KeyFromRiver(jobID int64, purpose string) string {
	return jobKey("river", strconv.FormatInt(jobID, 10), purpose)
}

// KeyFromSQS is the key of what a message of SQS asks for:
// sqs:5fea7756-…:email. messageID is MessageId, which every delivery of a
// message has in common. Never take ReceiptHandle, which is another on each
// delivery. A producer that sends twice makes two messages with two ids, and
// so does a redrive from a dead-letter queue: where that can happen, take the
// key from the body's own fact. purpose is as in [KeyFromRiver].
func KeyFromSQS(messageID, purpose string) string { return jobKey("sqs", messageID, purpose) }

// KeyFromAsynq is the key of what a task of Asynq does: asynq:c7b1…:email.
// taskID is that of asynq.GetTaskID within the handler (or of the TaskInfo
// that Enqueue returned), which all retries of a task have in common, those
// from the archive too. A task that is enqueued again has another id, unless
// asynq.TaskID names one. purpose is as in [KeyFromRiver].
func KeyFromAsynq(taskID, purpose string) string { return jobKey("asynq", taskID, purpose) }

// jobKey is the empty key, which [WithKey] has refused, where there is no id:
// all jobs without one would share a key.
func jobKey(queue, id, purpose string) string {
	if id == "" {
		return ""
	}
	key := queue + ":" + id
	if purpose != "" {
		key += ":" + purpose
	}
	return key
}
