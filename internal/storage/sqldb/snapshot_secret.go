package sqldb

import (
	"context"
	"errors"
	"fmt"
)

// SecretKeyIDs names the keys that have encrypted the secrets there are. A store
// from before there were any has none.
func (s *Snapshot) SecretKeyIDs(ctx context.Context) (ids [][]byte, err error) {
	there, err := s.has(ctx, "model_providers")
	if err != nil || !there {
		return nil, err
	}
	rows, err := s.conn.QueryContext(ctx, listModelSecretKeyIDs)
	if err != nil {
		return nil, fmt.Errorf("list the keys of secrets: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("list the keys of secrets: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
