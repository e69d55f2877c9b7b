package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// CreateCredential implements credential.Store.
func (s *Store) CreateCredential(ctx context.Context, d credential.Draft, e auditlog.Entry) (credential.Record, error) {
	var r credential.Record
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		if d.ProjectID != "" {
			_, err := q.FindProject(ctx, sqldb.FindProjectParams{OrganizationID: d.OrganizationID, ID: d.ProjectID})
			if errors.Is(err, sql.ErrNoRows) {
				return credential.ErrNotFound
			}
			if err != nil {
				return fmt.Errorf("read a project: %w", err)
			}
		}
		if err := createCredential(ctx, q, d); err != nil {
			return err
		}
		if r, err = getCredential(ctx, q, d.Hash[:]); err != nil {
			return err
		}
		return createEntries(ctx, q, e)
	})
	if err != nil {
		return credential.Record{}, err
	}
	return r, nil
}

// getCredential reads a credential that is there.
func getCredential(ctx context.Context, q *sqldb.Queries, hash []byte) (credential.Record, error) {
	row, err := q.FindCredential(ctx, hash)
	if err != nil {
		return credential.Record{}, fmt.Errorf("read a credential: %w", err)
	}
	return recordOf(row)
}

func createCredential(ctx context.Context, q *sqldb.Queries, d credential.Draft) error {
	number, err := q.NextNumber(ctx, sqldb.CounterCredential)
	if err != nil {
		return fmt.Errorf("take a credential number: %w", err)
	}
	p, err := rowOf(d, number)
	if err != nil {
		return err
	}
	n, err := q.CreateCredential(ctx, p)
	if err != nil {
		return fmt.Errorf("create a credential: %w", err)
	}
	if n == 0 {
		return credential.ErrTaken
	}
	return nil
}

func rowOf(d credential.Draft, number int64) (sqldb.CreateCredentialParams, error) {
	origins := d.Origins
	if origins == nil {
		origins = []string{}
	}
	text, err := json.Marshal(origins)
	if err != nil {
		return sqldb.CreateCredentialParams{}, fmt.Errorf("encode origins: %w", err)
	}
	p := sqldb.CreateCredentialParams{
		ID: d.ID, Number: number, OrganizationID: d.OrganizationID,
		ProjectID: sqldb.NullString(d.ProjectID), UserID: sqldb.NullString(d.UserID),
		Kind: string(d.Kind), Name: d.Name, SecretHash: d.Hash[:], Prefix: d.Prefix, LastFour: d.LastFour,
		Origins: string(text), CreatedAt: d.CreatedAt.UnixMicro(), ExpiresAt: sqldb.NullTime(d.ExpiresAt),
		SessionID: sqldb.NullString(d.SessionID),
	}
	if d.Rate != nil {
		p.Rate = sql.NullFloat64{Float64: *d.Rate, Valid: true}
	}
	if d.Burst != nil {
		p.Burst = sql.NullInt64{Int64: int64(*d.Burst), Valid: true}
	}
	return p, nil
}

// FindCredential implements credential.Store.
func (s *Store) FindCredential(ctx context.Context, hash credential.Hash) (credential.Record, bool, error) {
	row, err := s.db.Read().FindCredential(ctx, hash[:])
	row, found, err := optional(row, err, "read a credential")
	if err != nil || !found {
		return credential.Record{}, false, err
	}
	r, err := recordOf(row)
	if err != nil {
		return credential.Record{}, false, err
	}
	return r, true, nil
}

// ListCredentials implements credential.Store.
func (s *Store) ListCredentials(ctx context.Context, organizationID string, after int64, limit int) ([]credential.Record, error) {
	rows, err := s.db.Read().ListCredentials(ctx, sqldb.ListCredentialsParams{
		OrganizationID: organizationID, Number: after, Limit: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	all := make([]credential.Record, 0, len(rows))
	for _, row := range rows {
		r, err := recordOf(sqldb.FindCredentialRow(row))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// ListProjectCredentials implements credential.Store.
func (s *Store) ListProjectCredentials(ctx context.Context, q credential.ListQuery) ([]credential.Record, error) {
	var kinds strings.Builder
	kinds.WriteString(",")
	for _, k := range q.Kinds {
		kinds.WriteString(string(k) + ",")
	}
	rows, err := s.db.Read().ListProjectCredentials(ctx, sqldb.ListProjectCredentialsParams{
		OrganizationID: q.OrganizationID, ProjectID: sqldb.NullString(q.ProjectID), Kinds: kinds.String(),
		After: q.After, Size: sizeOf(q.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read the credentials of a project: %w", err)
	}
	all := make([]credential.Record, 0, len(rows))
	for _, row := range rows {
		r, err := recordOf(sqldb.FindCredentialRow(row))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// ChangeCredential implements credential.Store.
func (s *Store) ChangeCredential(
	ctx context.Context, organizationID, id string, decide func(credential.Record) (credential.Change, error),
) (credential.Record, error) {
	var r credential.Record
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		hash, err := q.LockCredential(ctx, sqldb.LockCredentialParams{OrganizationID: organizationID, ID: id})
		if errors.Is(err, sql.ErrNoRows) {
			return credential.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("lock a credential: %w", err)
		}
		old, err := getCredential(ctx, q, hash)
		if err != nil {
			return err
		}
		c, err := decide(old)
		if err != nil {
			return err
		}
		r, err = changeCredential(ctx, q, old, c)
		return err
	})
	if err != nil {
		return credential.Record{}, err
	}
	return r, nil
}

// changeCredential does what was decided and returns the replacement, if
// there is one.
func changeCredential(
	ctx context.Context, q *sqldb.Queries, old credential.Record, c credential.Change,
) (r credential.Record, err error) {
	if !c.RevokedAt.IsZero() {
		_, err = q.RevokeCredential(ctx, sqldb.RevokeCredentialParams{RevokedAt: sqldb.NullTime(c.RevokedAt), ID: old.ID})
		if err != nil {
			return r, fmt.Errorf("revoke a credential: %w", err)
		}
	}
	if !c.ExpiresAt.IsZero() {
		err = q.SetCredentialExpiry(ctx, sqldb.SetCredentialExpiryParams{ExpiresAt: sqldb.NullTime(c.ExpiresAt), ID: old.ID})
		if err != nil {
			return r, fmt.Errorf("set the end of a credential: %w", err)
		}
	}
	if c.Replacement != nil {
		if err = createCredential(ctx, q, *c.Replacement); err != nil {
			return r, err
		}
		if r, err = getCredential(ctx, q, c.Replacement.Hash[:]); err != nil {
			return r, err
		}
	}
	return r, createEntries(ctx, q, c.Entries...)
}

func recordOf(row sqldb.FindCredentialRow) (credential.Record, error) {
	r := credential.Record{
		Credential: credential.Credential{
			ID: row.ID, Number: row.Number, Kind: credential.Kind(row.Kind), Name: row.Name,
			OrganizationID: row.OrganizationID, Plan: row.Plan.String, ProjectID: row.ProjectID.String,
			UserID: row.UserID.String, Role: row.Role.String, SessionID: row.SessionID.String,
		},
		Prefix: row.Prefix, LastFour: row.LastFour,
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), ExpiresAt: sqldb.TimeOf(row.ExpiresAt), RevokedAt: sqldb.TimeOf(row.RevokedAt),
		Suspended: row.SuspendedAt.Valid,
	}
	if r.RevokedAt.IsZero() {
		r.RevokedAt = sqldb.TimeOf(row.SessionRevokedAt)
	}
	if row.ProjectNumber.Int64 < 0 || row.ProjectNumber.Int64 > math.MaxUint32 {
		return credential.Record{}, fmt.Errorf("project number %d is outside of 32 bits", row.ProjectNumber.Int64)
	}
	r.Project = uint32(row.ProjectNumber.Int64)
	if copy(r.Hash[:], row.SecretHash) != len(r.Hash) {
		return credential.Record{}, fmt.Errorf("the hash of credential %d has %d bytes", row.Number, len(row.SecretHash))
	}
	if err := json.Unmarshal([]byte(row.Origins), &r.Origins); err != nil {
		return credential.Record{}, fmt.Errorf("read the origins of credential %d: %w", row.Number, err)
	}
	if row.Rate.Valid {
		r.Rate = new(row.Rate.Float64)
	}
	if row.Burst.Valid {
		r.Burst = new(int(row.Burst.Int64))
	}
	return r, nil
}
