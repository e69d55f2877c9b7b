package account

import (
	"context"
	"fmt"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
	"github.com/actionpulse/actionpulse/internal/credential"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// The length of a password that a user chooses, in bytes.
const (
	minPassword = 10
	maxPassword = 1024
)

// ChangePasswordParams says what password a user wants.
type ChangePasswordParams struct {
	// Caller is the access token that the user presents. It and its session
	// go on; all others of the user end.
	Caller  credential.Credential
	Current string
	New     string // 10–1024 bytes
	Client  Client
}

// ChangePassword gives a user another password and ends all their other
// sessions. Faults: validation_failed; invalid_credentials when the current
// password is wrong, which counts like a failed login; rate_limited;
// unavailable, with applied true when it is done and only the announcement
// failed.
func (s *Sessions) ChangePassword(ctx context.Context, p ChangePasswordParams) error {
	if err := validatePassword("new_password", p.New); err != nil {
		return err
	}
	user, found, err := s.store.FindUserByID(ctx, p.Caller.UserID)
	if err != nil {
		return fmt.Errorf("find a user: %w", err)
	}
	if !found {
		return fault.New(api.CodeForbidden, "the credential speaks for no user")
	}
	right, err := s.passwords.check(ctx, attempt{
		email: user.Email, address: p.Client.Address, password: p.Current, hash: user.PasswordHash,
	})
	if err != nil {
		return err
	}
	if !right {
		return fault.New(api.CodeInvalidCredentials, "the current password is wrong")
	}
	hash, err := s.passwords.hash(ctx, p.New)
	if err != nil {
		return err
	}
	return s.changePassword(ctx, p, user, hash)
}

func (s *Sessions) changePassword(ctx context.Context, p ChangePasswordParams, user User, hash string) error {
	e, err := s.entry(auditlog.Entry{
		OrganizationID: p.Caller.OrganizationID, Actor: p.Client.actor(user.ID), Action: auditlog.PasswordChanged,
		Object: auditlog.Object{Kind: auditlog.ObjectUser, ID: user.ID},
	})
	if err != nil {
		return err
	}
	current, err := s.store.ChangePassword(ctx, PasswordChange{
		UserID: user.ID, OldHash: user.PasswordHash, NewHash: hash, At: e.At,
		KeepSessionID: p.Caller.SessionID, KeepCredentialID: p.Caller.ID, Entry: e,
	})
	if err = s.afterChange(ctx, err); err != nil {
		return fmt.Errorf("change a password: %w", err)
	}
	if !current {
		return fault.New(api.CodeInvalidCredentials, "the current password is wrong")
	}
	return nil
}

func validatePassword(field, password string) error {
	if len(password) < minPassword || len(password) > maxPassword {
		return fault.Field(field, "a password has %d to %d bytes", minPassword, maxPassword)
	}
	return nil
}
