package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// cacheTTL is the longest time that a change made by another server goes
// unnoticed. Changes made here show at once.
const cacheTTL = time.Second

// cache holds the providers that were called. One whose record is unchanged
// stays the same: it knows its limits.
type cache struct {
	mu  sync.Mutex
	all map[cacheKey]cached
	// changes counts what was forgotten: what was read before that is old.
	changes int64
}

type cacheKey struct{ projectID, name string }

type cached struct {
	record   Record
	provider Provider
	// read is when the store was asked; zero if it must be again.
	read time.Time
}

func newCache() *cache { return &cache{all: map[cacheKey]cached{}} }

// get returns what is known, and how many changes that takes in.
func (c *cache) get(k cacheKey) (cached, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[k], c.changes
}

// keep stores a provider, unless somebody else was faster with the same. What
// was read before a change is used once and not again.
func (c *cache) keep(k cacheKey, fresh cached, changes int64) Provider {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes != c.changes {
		fresh.read = time.Time{}
	}
	if before, ok := c.all[k]; ok && same(&before.record, &fresh.record) {
		fresh.provider = before.provider
	}
	c.all[k] = fresh
	return fresh.provider
}

// forget has the store asked again.
func (c *cache) forget(projectID, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	k := cacheKey{projectID, name}
	if one, ok := c.all[k]; ok {
		one.read = time.Time{}
		c.all[k] = one
	}
}

func (c *cache) drop(k cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, k)
}

// same reports whether two records make the same provider.
func same(a, b *Record) bool {
	return a.Settings == b.Settings && bytes.Equal(a.Sealed.Bytes, b.Sealed.Bytes) && bytes.Equal(a.Sealed.KeyID, b.Sealed.KeyID)
}

// Resolve finds a provider of a project by its name. Errors are [*Error], and
// NotSent.
func (s *Service) Resolve(ctx context.Context, projectID, name string) (Provider, error) {
	if name == Local {
		return s.params.Local, nil
	}
	k := cacheKey{projectID, name}
	now := s.params.Clock()
	one, changes := s.cache.get(k)
	if !one.read.IsZero() && now.Sub(one.read) < cacheTTL {
		return one.provider, nil
	}
	r, found, err := s.find(ctx, projectID, name)
	switch {
	case err != nil:
		return nil, &Error{Outcome: NotSent, Retryable: true, Message: "the model provider could not be looked up", Err: err}
	case !found:
		s.cache.drop(k)
		return nil, &Error{Outcome: NotSent, Message: "the project has no model provider of this name" + quoted(name)}
	}
	secret, err := s.params.Cipher.open(&r)
	if err != nil {
		return nil, &Error{Outcome: NotSent, Message: "the API key of the model provider cannot be read" + hint(err), Err: err}
	}
	return s.cache.keep(k, cached{record: r, read: now, provider: s.params.Open(Connection{
		BaseURL: r.BaseURL, APIKey: secret, Timeout: r.Timeout, RequestsPerMinute: r.RequestsPerMinute, MaxConcurrent: r.MaxConcurrent,
	})}, changes), nil
}

// quoted is a name that could be one.
func quoted(name string) string {
	if !namePattern.MatchString(name) {
		return ""
	}
	return fmt.Sprintf(": %q", name)
}

// hint says what helps, if that is known.
func hint(err error) string {
	if errors.Is(err, ErrOtherKey) {
		return ": " + ErrOtherKey.Error()
	}
	return ""
}
