package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/model"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

var _ model.Store = (*Store)(nil)

// PutProvider implements model.Store.
func (s *Store) PutProvider(ctx context.Context, p model.PutParams) (full bool, err error) {
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		before, err := lockProvider(ctx, q, p.ProjectID, p.Name)
		if err != nil {
			return err
		}
		if before == nil {
			n, err := q.CountModelProviders(ctx, p.ProjectID)
			if err != nil {
				return fmt.Errorf("count model providers: %w", err)
			}
			if full = n >= int64(p.Limit); full {
				return nil
			}
		}
		after, entry, err := p.Change(before)
		if err != nil || after == nil {
			return err
		}
		if err := putProvider(ctx, q, after); err != nil {
			return err
		}
		return createEntries(ctx, q, entry)
	})
	return full && err == nil, err
}

// lockProvider returns a provider that nobody else changes until the
// transaction ends, or nil.
func lockProvider(ctx context.Context, q *sqldb.Queries, projectID, name string) (*model.Record, error) {
	n, err := q.LockModelProvider(ctx, sqldb.LockModelProviderParams{ProjectID: projectID, Name: name})
	if err != nil {
		return nil, fmt.Errorf("lock a model provider: %w", err)
	}
	if n == 0 {
		return nil, nil
	}
	r, found, err := findProvider(ctx, q, projectID, name)
	if err != nil || !found {
		return nil, err
	}
	return &r, nil
}

func putProvider(ctx context.Context, q *sqldb.Queries, r *model.Record) error {
	err := q.PutModelProvider(ctx, sqldb.PutModelProviderParams{
		ProjectID: r.ProjectID, Name: r.Name, BaseUrl: r.BaseURL, Secret: r.Sealed.Bytes, SecretKeyID: r.Sealed.KeyID,
		SecretPrefix: r.Sealed.Prefix, SecretLastFour: r.Sealed.LastFour, Timeout: r.Timeout.Microseconds(),
		RequestsPerMinute: r.RequestsPerMinute, MaxConcurrent: r.MaxConcurrent,
		CreatedAt: r.CreatedAt.UnixMicro(), UpdatedAt: r.UpdatedAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("store a model provider: %w", err)
	}
	return nil
}

// FindProvider implements model.Store.
func (s *Store) FindProvider(ctx context.Context, projectID, name string) (model.Record, bool, error) {
	return findProvider(ctx, s.db.Read(), projectID, name)
}

func findProvider(ctx context.Context, q *sqldb.Queries, projectID, name string) (model.Record, bool, error) {
	row, err := q.FindModelProvider(ctx, sqldb.FindModelProviderParams{ProjectID: projectID, Name: name})
	row, found, err := optional(row, err, "read a model provider")
	if err != nil || !found {
		return model.Record{}, false, err
	}
	return providerOf(&row), true, nil
}

// ListProviders implements model.Store.
func (s *Store) ListProviders(ctx context.Context, projectID, after string, limit int) ([]model.Record, error) {
	rows, err := s.db.Read().ListModelProviders(ctx, sqldb.ListModelProvidersParams{ProjectID: projectID, Name: after, Limit: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read model providers: %w", err)
	}
	all := make([]model.Record, len(rows))
	for i := range rows {
		all[i] = providerOf(&rows[i])
	}
	return all, nil
}

// DeleteProvider implements model.Store.
func (s *Store) DeleteProvider(ctx context.Context, projectID, name string, entry auditlog.Entry) (bool, error) {
	found := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := q.DeleteModelProvider(ctx, sqldb.DeleteModelProviderParams{ProjectID: projectID, Name: name})
		if err != nil {
			return fmt.Errorf("delete a model provider: %w", err)
		}
		if found = n > 0; !found {
			return nil
		}
		return createEntries(ctx, q, entry)
	})
	return found && err == nil, err
}

// SecretKeyIDs implements model.Store.
func (s *Store) SecretKeyIDs(ctx context.Context) ([][]byte, error) {
	ids, err := s.db.Read().ListModelSecretKeyIDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the names of keys: %w", err)
	}
	return ids, nil
}

func providerOf(row *sqldb.ModelProvider) model.Record {
	return model.Record{
		ProjectID: row.ProjectID, Name: row.Name,
		Settings: model.Settings{
			BaseURL: row.BaseUrl, Timeout: time.Duration(row.Timeout) * time.Microsecond,
			RequestsPerMinute: row.RequestsPerMinute, MaxConcurrent: row.MaxConcurrent,
		},
		Sealed:    model.Sealed{Bytes: row.Secret, KeyID: row.SecretKeyID, Prefix: row.SecretPrefix, LastFour: row.SecretLastFour},
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), UpdatedAt: time.UnixMicro(row.UpdatedAt).UTC(),
	}
}
