package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// createEntries writes entries in the transaction of the change that they
// tell of.
func createEntries(ctx context.Context, q *sqldb.Queries, entries ...auditlog.Entry) error {
	for _, e := range entries {
		details := e.Details
		if details == nil {
			details = map[string]string{}
		}
		text, err := json.Marshal(details)
		if err != nil {
			return fmt.Errorf("encode the details of an audit entry: %w", err)
		}
		err = q.CreateAuditEntry(ctx, sqldb.CreateAuditEntryParams{
			ID: e.ID, OrganizationID: e.OrganizationID, ProjectID: sqldb.NullString(e.ProjectID), At: e.At.UnixMicro(),
			UserID: sqldb.NullString(e.Actor.UserID), RequestID: e.Actor.RequestID, Address: e.Actor.Address,
			Action: string(e.Action), ObjectKind: e.Object.Kind, ObjectID: e.Object.ID, Details: string(text),
		})
		if err != nil {
			return fmt.Errorf("create an audit entry: %w", err)
		}
	}
	return nil
}

// CreateEntries is for stores of other folders: it writes entries in the
// transaction of the change that they tell of.
func CreateEntries(ctx context.Context, q *sqldb.Queries, entries ...auditlog.Entry) error {
	return createEntries(ctx, q, entries...)
}

// CreateEntry implements account.SessionStore.
func (s *Store) CreateEntry(ctx context.Context, e auditlog.Entry) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error { return createEntries(ctx, q, e) })
}

// ListEntries implements auditlog.Store.
func (s *Store) ListEntries(ctx context.Context, organizationID, before string, limit int) ([]auditlog.Entry, error) {
	rows, err := s.db.Read().ListAuditEntries(ctx, sqldb.ListAuditEntriesParams{
		OrganizationID: organizationID, Before: before, Size: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read audit entries: %w", err)
	}
	all := make([]auditlog.Entry, 0, len(rows))
	for _, row := range rows {
		e := auditlog.Entry{
			ID: row.ID, OrganizationID: row.OrganizationID, ProjectID: row.ProjectID.String,
			At:     time.UnixMicro(row.At).UTC(),
			Actor:  auditlog.Actor{UserID: row.UserID.String, RequestID: row.RequestID, Address: row.Address},
			Action: auditlog.Action(row.Action), Object: auditlog.Object{Kind: row.ObjectKind, ID: row.ObjectID},
		}
		if err := json.Unmarshal([]byte(row.Details), &e.Details); err != nil {
			return nil, fmt.Errorf("read the details of audit entry %s: %w", row.ID, err)
		}
		all = append(all, e)
	}
	return all, nil
}
