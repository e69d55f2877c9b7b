package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/retention"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// FindProject implements account.Store and account.ProjectStore.
func (s *Store) FindProject(ctx context.Context, organizationID, projectID string) (account.Project, bool, error) {
	row, err := s.db.Read().FindProject(ctx, sqldb.FindProjectParams{OrganizationID: organizationID, ID: projectID})
	row, found, err := optional(row, err, "read a project")
	if err != nil || !found {
		return account.Project{}, false, err
	}
	p, err := projectOf(row)
	return p, err == nil, err
}

// ListProjects implements account.ProjectStore.
func (s *Store) ListProjects(
	ctx context.Context, organizationID string, after uint32, limit int,
) ([]account.Project, error) {
	rows, err := s.db.Read().ListProjects(ctx, sqldb.ListProjectsParams{
		OrganizationID: organizationID, Number: int64(after), Limit: sizeOf(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read projects: %w", err)
	}
	all := make([]account.Project, 0, len(rows))
	for _, row := range rows {
		p, err := projectOf(row)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// CreateProject implements account.ProjectStore.
func (s *Store) CreateProject(ctx context.Context, p account.Project, e auditlog.Entry) (uint32, error) {
	err := s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		if p.Number, err = nextProjectNumber(ctx, q); err != nil {
			return err
		}
		if err := createProject(ctx, q, p); err != nil {
			return err
		}
		return createEntries(ctx, q, e)
	})
	if err != nil {
		return 0, err
	}
	return p.Number, nil
}

func createProject(ctx context.Context, q *sqldb.Queries, p account.Project) error {
	err := q.CreateProject(ctx, sqldb.CreateProjectParams{
		ID: p.ID, Number: int64(p.Number), OrganizationID: p.OrganizationID, Name: p.Name, CreatedAt: p.CreatedAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a project: %w", err)
	}
	return nil
}

// ChangeProject implements account.ProjectStore.
func (s *Store) ChangeProject(
	ctx context.Context, organizationID, projectID string, c account.ProjectChange,
) (p account.Project, found bool, err error) {
	err = s.db.Write(ctx, func(q *sqldb.Queries) error {
		if err := changeProject(ctx, q, organizationID, projectID, c); err != nil {
			return fmt.Errorf("change a project: %w", err)
		}
		row, err := q.FindProject(ctx, sqldb.FindProjectParams{OrganizationID: organizationID, ID: projectID})
		if row, found, err = optional(row, err, "read a project"); err != nil || !found {
			return err
		}
		if p, err = projectOf(row); err != nil {
			return err
		}
		return createEntries(ctx, q, c.Entries...)
	})
	return p, found && err == nil, err
}

func changeProject(ctx context.Context, q *sqldb.Queries, organizationID, projectID string, c account.ProjectChange) error {
	if c.Name != nil {
		_, err := q.RenameProject(ctx, sqldb.RenameProjectParams{Name: *c.Name, OrganizationID: organizationID, ID: projectID})
		if err != nil {
			return err
		}
	}
	if c.Retention == (retention.Change{}) {
		return nil
	}
	if err := changeRetention(ctx, q, organizationID, projectID, c.Retention); err != nil {
		return err
	}
	// The row is locked by now, which keeps privacy jobs from being made.
	jobID, err := q.FindActivePrivacyJobOfProject(ctx, projectID)
	jobID, active, err := optional(jobID, err, "look for privacy jobs")
	if active {
		return privacy.Active(jobID)
	}
	return err
}

// changeRetention writes what a change names and nothing else, so that another
// change at the same moment is not undone.
func changeRetention(ctx context.Context, q *sqldb.Queries, organizationID, projectID string, c retention.Change) error {
	if c.Events != nil {
		_, err := q.SetProjectEventsDays(ctx, sqldb.SetProjectEventsDaysParams{
			EventsDays: daysOf(*c.Events), OrganizationID: organizationID, ID: projectID,
		})
		if err != nil {
			return err
		}
	}
	if c.Replays == nil {
		return nil
	}
	_, err := q.SetProjectReplaysDays(ctx, sqldb.SetProjectReplaysDaysParams{
		ReplaysDays: daysOf(*c.Replays), OrganizationID: organizationID, ID: projectID,
	})
	return err
}

// daysOf is a number of days as the tables hold it: none is NULL.
func daysOf(days int) sql.NullInt64 { return sql.NullInt64{Int64: int64(days), Valid: days > 0} }

// NoteReceived implements retention.Store.
func (s *Store) NoteReceived(ctx context.Context, server [16]byte, at time.Time) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) error {
		return q.NoteReceived(ctx, sqldb.NoteReceivedParams{Server: server[:], ReceivedAt: at.UnixMicro()})
	})
}

// ListRetention implements retention.Store.
func (s *Store) ListRetention(ctx context.Context, after uint32, limit int) ([]retention.Project, error) {
	rows, err := s.db.Read().ListProjectRetention(ctx, sqldb.ListProjectRetentionParams{Number: int64(after), Limit: sizeOf(limit)})
	if err != nil {
		return nil, fmt.Errorf("read how long projects keep what: %w", err)
	}
	all := make([]retention.Project, 0, len(rows))
	for _, row := range rows {
		number, err := projectNumber(row.Number)
		if err != nil {
			return nil, err
		}
		all = append(all, retention.Project{
			ID: row.ID, Number: number,
			Days: retention.Days{Events: int(row.EventsDays.Int64), Replays: int(row.ReplaysDays.Int64)},
		})
	}
	return all, nil
}

func projectOf(row sqldb.Project) (account.Project, error) {
	number, err := projectNumber(row.Number)
	if err != nil {
		return account.Project{}, err
	}
	return account.Project{
		ID: row.ID, Number: number, Name: row.Name, OrganizationID: row.OrganizationID,
		Retention: retention.Days{Events: int(row.EventsDays.Int64), Replays: int(row.ReplaysDays.Int64)},
		CreatedAt: time.UnixMicro(row.CreatedAt).UTC(),
	}, nil
}
