package audit

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/actionpulse/actionpulse/internal/dedup"
	"github.com/actionpulse/actionpulse/internal/record"
)

const (
	// bucketCount is how finely two sets of claims are compared at first; only
	// the buckets that differ are looked at claim by claim, bucketsAtOnce in
	// one reading.
	bucketCount   = 1 << 16
	bucketsAtOnce = 1 << 12
)

type bucket struct {
	count int64
	sum   uint64
}

func (v *view) verifyClaims(ctx context.Context, r *Report) error {
	live, expected := make([]bucket, bucketCount), make([]bucket, bucketCount)
	if err := v.intake.Claims(v.since, tally(live, &r.Claims)); err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	if err := v.expected(ctx, v.since, tally(expected, &r.ExpectedClaims)); err != nil {
		return err
	}
	differing := map[uint64]bool{}
	for i := range live {
		if live[i] != expected[i] {
			differing[uint64(i)] = true
		}
		if len(differing) < bucketsAtOnce && i < bucketCount-1 || len(differing) == 0 {
			continue
		}
		if err := v.explain(ctx, r, differing); err != nil || len(r.Differences) >= maxDifferences {
			return err
		}
		clear(differing)
	}
	return nil
}

func tally(buckets []bucket, total *int64) func(record.Identity, dedup.Claim) error {
	return func(id record.Identity, c dedup.Claim) error {
		h := hash(id)
		b := &buckets[h%bucketCount]
		b.count++
		b.sum += mixClaim(h, c)
		*total++
		return nil
	}
}

type known struct {
	id    record.Identity
	claim dedup.Claim
}

// explain names the claims of some buckets that only one side has. A claim
// may lack if there is a newer one of its identity, which alone is ever asked
// for: the two were claimed under a window that has been widened since. Nothing
// need call for a claim that is older than those which the event store keeps of
// erased rows, and that is alive under a widened window only.
func (v *view) explain(ctx context.Context, r *Report, buckets map[uint64]bool) error {
	balance, newest := map[known]int64{}, map[record.Identity]int64{}
	err := v.intake.Claims(v.since, func(id record.Identity, c dedup.Claim) error {
		if buckets[hash(id)%bucketCount] {
			balance[known{id, c}]++
			newest[id] = max(newest[id], c.Received)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	err = v.expected(ctx, v.since, func(id record.Identity, c dedup.Claim) error {
		if buckets[hash(id)%bucketCount] {
			balance[known{id, c}]--
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, n := range balance {
		at := time.UnixMilli(k.claim.Received).UTC().Format("2006-01-02T15:04:05.000Z")
		switch {
		case n > 0 && k.claim.Received < v.events.ClaimsKept():
			r.Claims -= n
		case n > 0:
			r.add("event %s is claimed since %s, but no stored or waiting event calls for it", name(k.id), at)
		case n < 0 && k.claim.Received < newest[k.id]:
			r.ExpectedClaims += n
		case n < 0:
			r.add("event %s, received %s, has no claim", name(k.id), at)
		}
	}
	return nil
}

func hash(id record.Identity) uint64 {
	var b [21]byte
	binary.BigEndian.PutUint32(b[:], id.Project)
	b[4] = byte(id.KeyKind)
	copy(b[5:], id.EventID[:])
	return xxhash.Sum64(b[:])
}

func mixClaim(h uint64, c dedup.Claim) uint64 {
	var b [20]byte
	binary.BigEndian.PutUint64(b[:], h)
	binary.BigEndian.PutUint64(b[8:], uint64(c.Received))
	binary.BigEndian.PutUint32(b[16:], c.Fingerprint)
	return xxhash.Sum64(b[:])
}
