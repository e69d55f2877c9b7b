package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// FindUser implements account.SessionStore.
func (s *Store) FindUser(ctx context.Context, email string) (account.User, bool, error) {
	row, err := s.db.Read().FindUser(ctx, email)
	row, found, err := optional(row, err, "read a user")
	if err != nil || !found {
		return account.User{}, false, err
	}
	return userOf(row), true, nil
}

// FindUserByID implements account.SessionStore.
func (s *Store) FindUserByID(ctx context.Context, userID string) (account.User, bool, error) {
	row, err := s.db.Read().FindUserByID(ctx, userID)
	row, found, err := optional(row, err, "read a user")
	if err != nil || !found {
		return account.User{}, false, err
	}
	return userOf(row), true, nil
}

// FindMembership implements account.SessionStore.
func (s *Store) FindMembership(ctx context.Context, userID, organizationID string) (account.Membership, bool, error) {
	if organizationID == "" {
		row, err := s.db.Read().FirstMembership(ctx, userID)
		row, found, err := optional(row, err, "read a membership")
		return account.Membership{OrganizationID: row.OrganizationID, UserID: userID, Role: row.Role}, found, err
	}
	role, err := roleIn(ctx, s.db.Read(), organizationID, userID)
	return account.Membership{OrganizationID: organizationID, UserID: userID, Role: role}, role != "", err
}

// CreateSession implements account.SessionStore.
func (s *Store) CreateSession(ctx context.Context, n account.NewSession) (bool, error) {
	current := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		rows, err := q.LockUser(ctx, sqldb.LockUserParams{ID: n.Session.UserID, PasswordHash: n.PasswordHash})
		if err != nil {
			return fmt.Errorf("lock a user: %w", err)
		}
		if current = rows > 0; !current {
			return nil
		}
		err = q.CreateSession(ctx, sqldb.CreateSessionParams{
			ID: n.Session.ID, UserID: n.Session.UserID, OrganizationID: n.Session.OrganizationID,
			CreatedAt: n.Session.CreatedAt.UnixMicro(),
		})
		if err != nil {
			return fmt.Errorf("create a session: %w", err)
		}
		next := account.NextTokens{Refresh: n.Refresh, Access: n.Access}
		if err := createTokens(ctx, q, n.Session.ID, next); err != nil {
			return err
		}
		return createEntries(ctx, q, n.Entry)
	})
	return current, err
}

func createTokens(ctx context.Context, q *sqldb.Queries, sessionID string, n account.NextTokens) error {
	err := q.CreateRefreshToken(ctx, sqldb.CreateRefreshTokenParams{
		SecretHash: n.Refresh.Hash[:], SessionID: sessionID,
		CreatedAt: n.Refresh.CreatedAt.UnixMicro(), ExpiresAt: n.Refresh.ExpiresAt.UnixMicro(),
	})
	if err != nil {
		return fmt.Errorf("create a refresh token: %w", err)
	}
	return createCredential(ctx, q, n.Access)
}

// ChangeSession implements account.SessionStore.
func (s *Store) ChangeSession(
	ctx context.Context, sq account.SessionQuery, decide func(account.SessionState) (account.SessionChange, error),
) (bool, error) {
	found := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		state, err := sessionState(ctx, q, sq)
		if found = !errors.Is(err, sql.ErrNoRows); !found {
			return nil
		}
		if err != nil {
			return err
		}
		c, err := decide(state)
		if err != nil {
			return err
		}
		return changeSession(ctx, q, state, c)
	})
	return found, err
}

// sessionState locks the session of a refresh token and reads what a refresh
// is decided by. sql.ErrNoRows: there is no such token.
func sessionState(
	ctx context.Context, q *sqldb.Queries, sq account.SessionQuery,
) (state account.SessionState, err error) {
	row, err := q.LockSessionOfToken(ctx, sq.Hash[:])
	if err != nil {
		return state, fmt.Errorf("lock a session: %w", err)
	}
	token, err := q.GetRefreshToken(ctx, sq.Hash[:])
	if err != nil {
		return state, fmt.Errorf("read a refresh token: %w", err)
	}
	state = account.SessionState{
		Session: account.Session{
			ID: row.ID, UserID: row.UserID, OrganizationID: row.OrganizationID,
			CreatedAt: time.UnixMicro(row.CreatedAt).UTC(), RevokedAt: sqldb.TimeOf(row.RevokedAt),
		},
		Token: account.RefreshToken{
			Hash: sq.Hash, CreatedAt: time.UnixMicro(token.CreatedAt).UTC(),
			ExpiresAt: time.UnixMicro(token.ExpiresAt).UTC(), SpentAt: sqldb.TimeOf(token.SpentAt),
		},
		OrganizationID: sq.OrganizationID,
	}
	if state.OrganizationID == "" {
		state.OrganizationID = row.OrganizationID
	}
	state.Role, err = roleIn(ctx, q, state.OrganizationID, row.UserID)
	return state, err
}

func changeSession(
	ctx context.Context, q *sqldb.Queries, state account.SessionState, c account.SessionChange,
) error {
	if !c.RevokedAt.IsZero() {
		_, err := q.RevokeSession(ctx, sqldb.RevokeSessionParams{RevokedAt: sqldb.NullTime(c.RevokedAt), ID: state.Session.ID})
		if err != nil {
			return fmt.Errorf("revoke a session: %w", err)
		}
	}
	if c.Next != nil {
		if err := goOn(ctx, q, state, *c.Next); err != nil {
			return err
		}
	}
	return createEntries(ctx, q, c.Entries...)
}

// goOn spends a session's refresh token and stores its next tokens.
func goOn(ctx context.Context, q *sqldb.Queries, state account.SessionState, n account.NextTokens) error {
	_, err := q.SpendRefreshToken(ctx, sqldb.SpendRefreshTokenParams{
		SpentAt: sqldb.NullTime(n.Refresh.CreatedAt), SecretHash: state.Token.Hash[:],
	})
	if err != nil {
		return fmt.Errorf("spend a refresh token: %w", err)
	}
	err = q.SetSessionOrganization(ctx, sqldb.SetSessionOrganizationParams{
		OrganizationID: n.Access.OrganizationID, ID: state.Session.ID,
	})
	if err != nil {
		return fmt.Errorf("change a session's organization: %w", err)
	}
	return createTokens(ctx, q, state.Session.ID, n)
}

// RevokeAccess implements account.SessionStore.
func (s *Store) RevokeAccess(ctx context.Context, r account.AccessRevocation) error {
	return s.db.Write(ctx, func(q *sqldb.Queries) (err error) {
		var n int64
		if r.SessionID != "" {
			n, err = q.RevokeSession(ctx, sqldb.RevokeSessionParams{RevokedAt: sqldb.NullTime(r.At), ID: r.SessionID})
		} else {
			n, err = q.RevokeCredential(ctx, sqldb.RevokeCredentialParams{RevokedAt: sqldb.NullTime(r.At), ID: r.CredentialID})
		}
		if err != nil {
			return fmt.Errorf("revoke a session or its token: %w", err)
		}
		if n == 0 {
			return nil
		}
		return createEntries(ctx, q, r.Entry)
	})
}

// ChangePassword implements account.SessionStore. Changing the hash first
// makes a login under way wait, or be seen.
func (s *Store) ChangePassword(ctx context.Context, c account.PasswordChange) (bool, error) {
	current := false
	err := s.db.Write(ctx, func(q *sqldb.Queries) error {
		n, err := q.SetPasswordHash(ctx, sqldb.SetPasswordHashParams{
			PasswordHash: c.NewHash, ID: c.UserID, PasswordHash_2: c.OldHash,
		})
		if err != nil {
			return fmt.Errorf("change a password hash: %w", err)
		}
		if current = n > 0; !current {
			return nil
		}
		err = q.RevokeSessionsOfUser(ctx, sqldb.RevokeSessionsOfUserParams{
			RevokedAt: sqldb.NullTime(c.At), UserID: c.UserID, ID: c.KeepSessionID,
		})
		if err != nil {
			return fmt.Errorf("revoke sessions: %w", err)
		}
		err = q.RevokeLooseTokensOfUser(ctx, sqldb.RevokeLooseTokensOfUserParams{
			RevokedAt: sqldb.NullTime(c.At), UserID: sqldb.NullString(c.UserID), ID: c.KeepCredentialID,
		})
		if err != nil {
			return fmt.Errorf("revoke access tokens: %w", err)
		}
		return createEntries(ctx, q, c.Entry)
	})
	return current, err
}
