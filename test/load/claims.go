package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	goalClaimBytes = 30
	// claimGroup is how many ids are committed together.
	claimGroup = 20_000
)

// measureClaims fills an intake store with random ids, trims the records and
// measures what the claims take once the store has been compacted.
func (b *bench) measureClaims(ctx context.Context) error {
	dir := filepath.Join(b.dir, "claims")
	options := intakestore.Options{
		Dir: filepath.Join(dir, "intake"), Mark: filepath.Join(dir, "mark"), Log: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { panic(err) },
	}
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := intakestore.Create(options, [16]byte{1}, intakestore.State{}); err != nil {
		return err
	}
	store, err := intakestore.Open(options)
	if err != nil {
		return err
	}
	ids := b.scaled(5_000_000)
	bytes, err := fillClaims(ctx, store, ids)
	if err := errors.Join(err, store.Close(), os.RemoveAll(dir)); err != nil {
		return err
	}
	each := float64(bytes) / float64(ids)
	b.add(row{
		what: fmt.Sprintf("claims on disk, %s random UUIDs, after compaction", round(float64(ids))), goal: "≤ 30 bytes an id",
		measured: round(each) + " bytes an id", cpu: "–", baseline: "Segment published 25 bytes an id", met: met(each <= goalClaimBytes),
	})
	return nil
}

// fillClaims claims random ids and returns the bytes that they take.
func fillClaims(ctx context.Context, store *intakestore.Store, ids int) (uint64, error) {
	now := time.Now().UnixMilli()
	for left := ids; left > 0; left -= claimGroup {
		entry := intakestore.Entry{Header: record.Record{Project: 1, KeyKind: record.KeyServer, Key: 1}}
		for range min(claimGroup, left) {
			it := record.Item{Type: record.ItemEvent, Claimed: true, Event: "e", UserID: "u"}
			if _, err := rand.Read(it.EventID[:]); err != nil {
				return 0, fmt.Errorf("make an id: %w", err)
			}
			it.Fingerprint = uint32(it.EventID[0]) * 0x9e3779b9 // events differ
			entry.Items = append(entry.Items, intakestore.Item{
				EventID: it.EventID, Fingerprint: it.Fingerprint, Claimed: true, Encoded: record.AppendItem(nil, &it),
			})
		}
		now += 100
		pending, err := store.Commit(intakestore.Group{
			Received: now, Window: (48 * time.Hour).Milliseconds(), Entries: []intakestore.Entry{entry},
		})
		if err != nil {
			return 0, err
		}
		if err := pending.Wait(); err != nil {
			return 0, err
		}
	}
	if err := store.Trim(store.Durable()); err != nil {
		return 0, err
	}
	if err := store.Compact(ctx); err != nil {
		return 0, err
	}
	return store.ClaimBytes()
}
