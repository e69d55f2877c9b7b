package eventstore

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore/duck"
	"github.com/actionpulse/actionpulse/internal/record"
)

// A batch adds a row to usage for each project and month in it. They are added
// up when there are more than usageFactor times as many as there need be, and
// usageSlack more.
const (
	usageFactor = 4
	usageSlack  = 256
)

// Usage is what a project has used in a month.
type Usage struct {
	Project uint32
	// Month is the month of receipt in UTC, like 202401.
	Month int32
	// Events is how many event rows were stored, whether or not they are there
	// still; each call of identify stores one.
	Events int64
	// Bytes is the size of their encoded items.
	Bytes int64
}

// Usage returns what all projects have used, in order of project and month.
// What is deleted stays counted.
func (s *Store) Usage(ctx context.Context) ([]Usage, error) {
	var list []Usage
	err := s.read(ctx, func(conn *duck.Conn, _ Mark) error {
		rows, err := conn.Query(ctx, `SELECT project, month, sum(events)::BIGINT, sum(bytes)::BIGINT
			FROM usage GROUP BY project, month ORDER BY project, month`)
		if err != nil {
			return err
		}
		for rows.Next() {
			list = append(list, Usage{
				Project: rows.Uint32(0), Month: int32(rows.Uint32(1)), Events: rows.Int64(2), Bytes: rows.Int64(3),
			})
		}
		return rows.Close()
	})
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return list, nil
}

type usageKey struct {
	project, month uint32
}

type usageSum struct {
	events, bytes int64
}

// meter adds up what one batch stores.
type meter struct {
	sums map[usageKey]*usageSum
	// of is what the last row was counted to; received is its receipt time.
	of       *usageSum
	project  uint32
	received int64
}

// add counts one row.
func (m *meter) add(r *record.Record, it *record.Item) {
	if m.of == nil || m.project != r.Project || m.received != r.Received {
		m.of, m.project, m.received = m.sum(r), r.Project, r.Received
	}
	m.of.events++
	m.of.bytes += int64(record.EncodedSize(it))
}

func (m *meter) sum(r *record.Record) *usageSum {
	at := time.UnixMilli(r.Received).UTC()
	key := usageKey{r.Project, uint32(at.Year()*100 + int(at.Month()))}
	if m.sums[key] == nil {
		if m.sums == nil {
			m.sums = map[usageKey]*usageSum{}
		}
		m.sums[key] = &usageSum{}
	}
	return m.sums[key]
}

// saveUsage writes what the batch has counted.
func (b *batch) saveUsage(ctx context.Context) error {
	b.usageRows, b.usageLimit = b.store.usageRows+int64(len(b.meter.sums)), b.store.usageLimit
	if len(b.meter.sums) == 0 {
		return nil
	}
	a, err := usageAppender(b.store.writer)
	if err != nil {
		return err
	}
	defer a.Close()
	for key, sum := range b.meter.sums {
		a.Uint32(0, key.project)
		a.Uint32(1, key.month)
		a.Int64(2, sum.events)
		a.Int64(3, sum.bytes)
		if err := a.EndRow(); err != nil {
			return err
		}
	}
	if err := a.Flush(); err != nil || b.usageRows <= b.usageLimit {
		return err
	}
	b.usageRows, err = addUpUsage(ctx, b.store.writer)
	b.usageLimit = usageFactor*b.usageRows + usageSlack
	return err
}

// addUpUsage leaves one row for each project and month, and returns how many
// these are.
func addUpUsage(ctx context.Context, conn *duck.Conn) (int64, error) {
	for _, statement := range []string{
		`CREATE OR REPLACE TEMP TABLE usage_sums AS
			SELECT project, month, sum(events)::BIGINT AS events, sum(bytes)::BIGINT AS bytes FROM usage GROUP BY project, month`,
		`DELETE FROM usage`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return 0, fmt.Errorf("add up usage: %w", err)
		}
	}
	n, err := conn.Exec(ctx, `INSERT INTO usage SELECT project, month, events, bytes FROM usage_sums`)
	if err != nil {
		return 0, fmt.Errorf("add up usage: %w", err)
	}
	return n, nil
}
