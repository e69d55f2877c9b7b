package sqlstore

import (
	"context"
	"fmt"
	"math"

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
			if row.Number < 1 || row.Number > math.MaxUint32 {
				return nil, fmt.Errorf("project number %d is outside of 32 bits", row.Number)
			}
			owners[uint32(row.Number)], after = row.OrganizationID, row.Number
		}
		if len(rows) < ownerPage {
			return owners, nil
		}
	}
}
