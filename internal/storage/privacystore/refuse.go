package privacystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// shareText keeps jobs of a project from being made until the transaction ends.
const shareText = `SELECT id FROM projects WHERE id = $1`

// RefusePerson returns privacy_job_active if a job about a person is not
// finished. It is asked first in the transaction of the change that it would
// refuse; until that ends, no job is made.
func RefusePerson(ctx context.Context, b *sqldb.Batch, projectID string, p privacy.Person) error {
	err := b.Run(ctx, []sqldb.Statement{{Text: b.Sharing(shareText), Args: []any{projectID}, Row: func(scan func(...any) error) error {
		var locked string
		return scan(&locked)
	}}})
	if err != nil {
		return fmt.Errorf("keep privacy jobs out: %w", err)
	}
	kind, person := personOf(p)
	jobID, err := b.Queries().FindActivePrivacyJob(ctx, sqldb.FindActivePrivacyJobParams{ProjectID: projectID, PersonKind: kind, Person: person})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for privacy jobs: %w", err)
	default:
		return privacy.Active(jobID)
	}
}
