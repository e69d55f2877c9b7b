// Package sqlstore keeps idempotency keys in SQLite or PostgreSQL, in one
// table, for both forms of package idempotency:
//
//   - atomic: [Store.Do] makes the claim the first row of a transaction that is
//     the caller's, does the work and stores the answer; all of it commits
//     together or not at all. [Store.Run] is Do in a transaction of its own.
//   - leased: [Store] implements [idempotency.Store] for the middleware.
//
// Invariants:
//   - a unit of work has one row: (scope, namespace, key) is the primary key and
//     the only judge of who was first;
//   - an owner whose claim has passed on cannot write: every write names the
//     token and the epoch;
//   - what a repeat hears depends on times in the row and on the clock, never
//     on when [Store.Sweep] ran;
//   - rows of keys that are kept for ever are never deleted.
//
// The package never retries a transaction that is the caller's and never
// decides what a repeat is answered with: [idempotency.Judge] does.
package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/actionpulse/actionpulse/idempotency"
)

// Dialect says which engine the database is.
type Dialect int

// The engines.
const (
	// SQLite, 3.39 or later. One connection should do all the writing, and its
	// transactions begin IMMEDIATE.
	SQLite Dialect = iota + 1
	// PostgreSQL, 13 or later. Transactions should be READ COMMITTED, the
	// default; at higher levels a claim can fail with a serialization failure,
	// and the caller's transaction must be run again.
	PostgreSQL
)

// Options configures a [Store].
type Options struct {
	// DB reads, and writes unless Write is set.
	DB      *sql.DB
	Dialect Dialect
	// Write runs a function in a transaction and commits it; nil is a plain
	// transaction of DB, run again when PostgreSQL has ended it for the sake of
	// another (SQLSTATE 40001, 40P01). It may run the function several times,
	// each time after a rollback.
	Write func(ctx context.Context, fn func(*sql.Tx) error) error
	// Unknown says whether an error of Write leaves open whether the
	// transaction was committed; nil knows the errors of the default Write.
	Unknown func(error) bool
	// Clock gives the time; nil is time.Now on SQLite and the database's own
	// clock on PostgreSQL, which all processes share.
	Clock func() time.Time
}

// Store keeps keys in a database. Its methods may be called from many
// goroutines.
type Store struct {
	options Options
	sql     statements
	finder  finder
	// step is called between steps, by tests that want to die there.
	step func(string)
}

var _ idempotency.Store = (*Store)(nil)

// New returns a store in a database that [Migrate] has prepared. The database
// stays the caller's to close.
func New(o Options) (*Store, error) {
	if o.DB == nil {
		return nil, errors.New("the store needs a DB")
	}
	if o.Dialect != SQLite && o.Dialect != PostgreSQL {
		return nil, errors.New("the store needs a dialect")
	}
	if (o.Write == nil) != (o.Unknown == nil) {
		return nil, errors.New("the options Write and Unknown belong together")
	}
	if o.Write == nil {
		o.Write, o.Unknown = writer(o.DB), isUnknown
	}
	if o.Clock == nil && o.Dialect == SQLite {
		o.Clock = time.Now
	}
	return &Store{options: o, sql: newStatements(o.Dialect), step: func(string) {}}, nil
}

// now is the first parameter of every statement: the time in microseconds, or
// NULL for the database's own.
func (s *Store) now() sql.NullInt64 {
	if s.options.Clock == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: s.options.Clock().UnixMicro(), Valid: true}
}

// ErrRef is returned for a scope, namespace or key that the table cannot hold:
// it is empty or too long, is not UTF-8, or has a U+0000.
var ErrRef = errors.New("the scope or key of an idempotent request is empty, too long, or not text")

// The longest of each, in bytes.
const (
	scopeLimit     = 200
	namespaceLimit = 64
	keyLimit       = 1024
)

func checkRef(r idempotency.Ref) error {
	if !fits(r) {
		return ErrRef
	}
	return nil
}

// fits says whether the table can hold a key.
func fits(r idempotency.Ref) bool {
	for _, one := range []struct {
		text  string
		limit int
	}{{r.Scope, scopeLimit}, {r.Namespace, namespaceLimit}, {r.Key, keyLimit}} {
		if one.text == "" || len(one.text) > one.limit || !isText(one.text) {
			return false
		}
	}
	return true
}

// isText says whether both engines keep a text as it is.
func isText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// newToken makes the token of an owner.
func newToken() (token [16]byte) {
	rand.Read(token[:]) // it never fails: the program ends instead
	return token
}

// Find implements [idempotency.Store]. The record has an answer only as long
// as that is kept by the clock. A key that the table cannot hold was never used.
func (s *Store) Find(ctx context.Context, ref idempotency.Ref) (idempotency.Record, bool, error) {
	if !fits(ref) {
		return idempotency.Record{}, false, nil
	}
	rec, now, found, err := s.read(ctx, ref)
	if err != nil || !found || rec.State == idempotency.Free {
		return idempotency.Record{}, false, err
	}
	held := rec.State == idempotency.Claimed && !past(rec.Owner.ExpiresAt, now)
	if !held && past(rec.KeyExpiresAt, now) {
		return idempotency.Record{}, false, nil
	}
	return rec, true, nil
}

// Judge says what a request's key means, reading outside of any transaction.
// Repeats and conflicts are final. Fresh only means that it is worth trying:
// whether the key is free, Do decides. The error is an *idempotency.Error,
// [ErrRef], or says that the database failed.
func (s *Store) Judge(ctx context.Context, r idempotency.Request) (result idempotency.Result, fresh bool, err error) {
	seen, err := s.look(ctx, &r)
	if err != nil || seen.Judgement.Verdict == idempotency.Fresh {
		return idempotency.Result{}, err == nil, err
	}
	result, err = seen.Judgement.Resolve(&r, seen.Record)
	return result, false, err
}

// look judges a request by what a reader sees.
func (s *Store) look(ctx context.Context, r *idempotency.Request) (idempotency.Claim, error) {
	if err := checkRef(r.Ref()); err != nil {
		return idempotency.Claim{}, err
	}
	rec, now, found, err := s.read(ctx, r.Ref())
	if err != nil || !found {
		return idempotency.Claim{}, err
	}
	j := idempotency.Judge(r, &rec, now)
	if j.Verdict == idempotency.Fresh {
		return idempotency.Claim{}, nil
	}
	return idempotency.Claim{Judgement: j, Record: rec}, nil
}

// AddCounts adds to the counters of keys; it is what an [idempotency.Tally]
// needs. Rows are locked in order of key, so that two such calls do not
// deadlock, SweepGroup of them a transaction, so that others get their turn.
// Counts of keys that are not there are dropped. Counters are best effort: if
// it fails half way, what it has added is added again.
func (s *Store) AddCounts(ctx context.Context, counts []idempotency.Count) error {
	counts = slices.Clone(counts)
	sortCounts(counts)
	for group := range slices.Chunk(counts, SweepGroup) {
		if err := s.options.Write(ctx, func(tx *sql.Tx) error { return s.addCounts(ctx, tx, group) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) addCounts(ctx context.Context, tx *sql.Tx, counts []idempotency.Count) (err error) {
	add, err := tx.PrepareContext(ctx, s.sql.count)
	if err != nil {
		return fmt.Errorf("prepare to count repeats of idempotency keys: %w", err)
	}
	defer func() { err = errors.Join(err, add.Close()) }()
	for _, c := range counts {
		_, err := add.ExecContext(ctx, c.Ref.Scope, c.Ref.Namespace, c.Ref.Key, c.Repeats, c.Conflicts)
		if err != nil {
			return fmt.Errorf("count the repeats of an idempotency key: %w", err)
		}
	}
	return nil
}
