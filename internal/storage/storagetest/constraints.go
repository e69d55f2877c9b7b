package storagetest

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is what a credential's row holds, by column.
type row map[string]any

func (r row) with(changes row) row {
	c := maps.Clone(r)
	maps.Copy(c, changes)
	return c
}

// insert returns the statement and the arguments that insert the row.
func (r row) insert(table string) (string, []any) {
	columns := slices.Sorted(maps.Keys(r))
	var places []string
	var args []any
	for i, c := range columns {
		places = append(places, "$"+strconv.Itoa(i+1))
		args = append(args, r[c])
	}
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(places, ", ") + ")", args
}

// testConstraints checks that the database itself refuses what the code never
// means to write.
func testConstraints(t *testing.T, open OpenFunc) {
	h := newLivedIn(t, open)
	otherOrganization, otherProject := h.addOrganization(t)
	const anID = "0196a1b2-c3d4-7e5f-8a6b-00000000000f"
	server := row{
		"id": anID, "number": 99, "organization_id": h.setup.OrganizationID, "project_id": h.setup.Project.ID,
		"user_id": nil, "kind": "server", "name": "n", "secret_hash": bytes.Repeat([]byte{7}, 32), "prefix": "aps_",
		"last_four": "abcd", "origins": "[]", "rate": nil, "burst": nil, "created_at": 5, "expires_at": nil, "revoked_at": nil,
	}
	access := server.with(row{"kind": "access", "user_id": h.setup.UserID, "project_id": nil, "expires_at": 9})
	for name, good := range map[string]row{
		"server": server, "access": access,
		"browser": server.with(row{"kind": "browser", "origins": `["https://a.example"]`, "rate": 0.0, "burst": 1}),
	} {
		query, args := good.insert("credentials")
		if _, err := h.raw.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s is refused: %v", name, err)
		}
		exec(t, h.raw, "DELETE FROM credentials WHERE id = $1", anID)
	}
	for name, bad := range map[string]row{
		"unknown kind":                      server.with(row{"kind": "root"}),
		"kind in another case":              server.with(row{"kind": "Server"}),
		"server key without a project":      server.with(row{"project_id": nil}),
		"server key with a user":            server.with(row{"user_id": h.setup.UserID}),
		"server key with origins":           server.with(row{"origins": `["https://a.example"]`}),
		"server key without origins":        server.with(row{"origins": nil}),
		"project of another organization":   server.with(row{"project_id": otherProject}),
		"organization of another project":   server.with(row{"organization_id": otherOrganization}),
		"unknown organization":              access.with(row{"organization_id": anID}),
		"unknown user":                      access.with(row{"user_id": anID}),
		"access token with a project":       access.with(row{"project_id": h.setup.Project.ID}),
		"access token without a user":       access.with(row{"user_id": nil}),
		"access token without an end":       access.with(row{"expires_at": nil}),
		"end before the beginning":          access.with(row{"expires_at": 5}),
		"number 0":                          server.with(row{"number": 0}),
		"number taken":                      server.with(row{"number": 1}),
		"short hash":                        server.with(row{"secret_hash": bytes.Repeat([]byte{7}, 31)}),
		"no hash":                           server.with(row{"secret_hash": nil}),
		"id without its form":               server.with(row{"id": "1"}),
		"no id":                             server.with(row{"id": nil}),
		"no name":                           server.with(row{"name": ""}),
		"more than four characters at last": server.with(row{"last_four": "abcde"}),
		"negative rate":                     server.with(row{"rate": -0.5}),
		"endless rate":                      server.with(row{"rate": math.Inf(1)}),
		"burst of none":                     server.with(row{"burst": 0}),
		"text for a time":                   server.with(row{"created_at": "yesterday"}),
	} {
		mustRefuseRow(t, h, name, "credentials", bad)
	}
	testOtherConstraints(t, h, anID)
	testSessionConstraints(t, h, anID)
}

func testOtherConstraints(t *testing.T, h *house, anID string) {
	project := row{"id": anID, "number": 99, "organization_id": h.setup.OrganizationID, "name": "n", "created_at": 0}
	user := row{"id": anID, "email": "new@shop.example", "password_hash": "$argon2id$x", "created_at": 0}
	for name, bad := range map[string]row{
		"number 0":             project.with(row{"number": 0}),
		"number past 32 bits":  project.with(row{"number": int64(1) << 32}),
		"number taken":         project.with(row{"number": 1}),
		"unknown organization": project.with(row{"organization_id": anID}),
	} {
		mustRefuseRow(t, h, name, "projects", bad)
	}
	for name, bad := range map[string]row{
		"email taken":       user.with(row{"email": h.setup.Email}),
		"no email":          user.with(row{"email": ""}),
		"password in clear": user.with(row{"password_hash": "secret"}),
	} {
		mustRefuseRow(t, h, name, "users", bad)
	}
	mustRefuseRow(t, h, "a second identity", "meta",
		row{"id": 2, "store_identity": make([]byte, 16), "format_version": 1, "created_at": 0})
	mustRefuseRow(t, h, "an unknown counter", "counters", row{"name": "other", "value": 0})
	mustRefuseRow(t, h, "an unknown role", "memberships",
		row{"organization_id": h.setup.OrganizationID, "user_id": h.setup.UserID, "role": "root", "created_at": 0})
}

// testSessionConstraints checks the tables of migration 2.
func testSessionConstraints(t *testing.T, h *house, anID string) {
	first := h.ownerLogin(t)
	hash := bytes.Repeat([]byte{7}, 32)
	token := row{"secret_hash": hash, "session_id": first.SessionID, "created_at": 5, "expires_at": 9, "spent_at": 6}
	invitation := row{
		"id": anID, "organization_id": h.setup.OrganizationID, "email": "a@b", "role": "viewer", "secret_hash": hash,
		"created_by": nil, "created_at": 5, "expires_at": 9, "accepted_at": nil, "revoked_at": nil,
	}
	entry := row{
		"id": anID, "organization_id": h.setup.OrganizationID, "project_id": nil, "at": 5, "user_id": nil, "request_id": "",
		"address": "", "action": "key.created", "object_kind": "key", "object_id": "x", "details": "{}",
	}
	for table, good := range map[string]row{"refresh_tokens": token, "invitations": invitation, "audit_entries": entry} {
		query, args := good.insert(table)
		exec(t, h.raw, query, args...)
		column := "id"
		if table == "refresh_tokens" {
			column = "secret_hash"
		}
		exec(t, h.raw, "DELETE FROM "+table+" WHERE "+column+" = $1", good[column])
	}
	for name, bad := range map[string]row{
		"a second token to go on with": token.with(row{"spent_at": nil}),
		"unknown session":              token.with(row{"session_id": anID}),
		"end before the beginning":     token.with(row{"expires_at": 5}),
		"short hash":                   token.with(row{"secret_hash": []byte{7}}),
	} {
		mustRefuseRow(t, h, name, "refresh_tokens", bad)
	}
	for name, bad := range map[string]row{
		"both accepted and revoked": invitation.with(row{"accepted_at": 6, "revoked_at": 6}),
		"unknown role":              invitation.with(row{"role": "root"}),
		"unknown creator":           invitation.with(row{"created_by": anID}),
		"unknown organization":      invitation.with(row{"organization_id": anID}),
		"no email":                  invitation.with(row{"email": ""}),
	} {
		mustRefuseRow(t, h, name, "invitations", bad)
	}
	for name, bad := range map[string]row{
		"unknown organization":            entry.with(row{"organization_id": anID}),
		"unknown user":                    entry.with(row{"user_id": anID}),
		"project of another organization": entry.with(row{"project_id": "0196a1b2-c3d4-7e5f-8a6b-0123456789ac"}),
		"no action":                       entry.with(row{"action": ""}),
	} {
		mustRefuseRow(t, h, name, "audit_entries", bad)
	}
	mustRefuseRow(t, h, "a key with a session", "credentials", row{
		"id": anID, "number": 99, "organization_id": h.setup.OrganizationID, "project_id": h.setup.Project.ID,
		"kind": "server", "name": "n", "secret_hash": hash, "prefix": "aps_", "last_four": "abcd", "origins": "[]",
		"created_at": 5, "session_id": first.SessionID,
	})
}

// mustRefuseRow tries to insert a row, in a transaction that is undone.
func mustRefuseRow(t *testing.T, h *house, name, table string, bad row) {
	t.Helper()
	tx, err := h.raw.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	query, args := bad.insert(table)
	if _, err := tx.ExecContext(t.Context(), query, args...); err == nil {
		t.Errorf("%s: %s took it", name, table)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}
