package sqlstore

import (
	"context"
	"fmt"
	"math"

	"github.com/actionpulse/actionpulse/internal/quota"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// ownerPage is how many projects are read at once.
const ownerPage = 1000

// ProjectOwners returns the organization of every project, by its number.
func (s *Store) ProjectOwners(ctx context.Context) (map[uint32]string, error) {
	owners := map[uint32]string{}
	for after := int64(0); ; {
		rows, err := s.db.Read().ListProjectOwners(ctx, sqldb.ListProjectOwnersParams{Number: after, Limit: ownerPage})
		if err != nil {
			return nil, fmt.Errorf("read whose projects are: %w", err)
		}
		for _, row := range rows {
			number, err := projectNumber(row.Number)
			if err != nil {
				return nil, err
			}
			owners[number], after = row.OrganizationID, row.Number
		}
		if len(rows) < ownerPage {
			return owners, nil
		}
	}
}

func projectNumber(n int64) (uint32, error) {
	if n < 1 || n > math.MaxUint32 {
		return 0, fmt.Errorf("project number %d is outside of 32 bits", n)
	}
	return uint32(n), nil
}

// ReplayUsage implements quota.ReplayStore.
func (s *Store) ReplayUsage(ctx context.Context, organizationID string, month quota.Month) (plan string, bytes int64, err error) {
	row, err := s.db.Read().FindReplayUsage(ctx, sqldb.FindReplayUsageParams{OrganizationID: organizationID, Month: int64(month)})
	if err != nil {
		return "", 0, fmt.Errorf("read the replays of an organization: %w", err)
	}
	return row.Plan.String, row.Bytes, nil
}

// ProjectReplays implements quota.ReplayStore.
func (s *Store) ProjectReplays(ctx context.Context, organizationID string, month quota.Month) (map[uint32]int64, error) {
	rows, err := s.db.Read().ListReplayUsage(ctx, sqldb.ListReplayUsageParams{OrganizationID: organizationID, Month: int64(month)})
	if err != nil {
		return nil, fmt.Errorf("read the replays of projects: %w", err)
	}
	all := make(map[uint32]int64, len(rows))
	for _, row := range rows {
		number, err := projectNumber(row.Number)
		if err != nil {
			return nil, err
		}
		all[number] = row.Bytes
	}
	return all, nil
}

// AllReplays implements quota.ReplayStore.
func (s *Store) AllReplays(ctx context.Context, month quota.Month) (map[string]int64, error) {
	rows, err := s.db.Read().SumReplayUsage(ctx, int64(month))
	if err != nil {
		return nil, fmt.Errorf("read the replays of all organizations: %w", err)
	}
	all := make(map[string]int64, len(rows))
	for _, row := range rows {
		all[row.OrganizationID] = row.Bytes
	}
	return all, nil
}
