// Package storagetest is the one suite that every engine of the transactional
// store must pass, and opens stores for the tests of other packages. It is
// imported by tests only.
package storagetest

import (
	"bytes"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// Identity is the store identity of the stores made here.
var Identity = [16]byte(bytes.Repeat([]byte{0xa5}, 16))

// OpenFunc makes a place for a store that is removed when the test ends. Each
// call makes another, with nothing in it unless contents, one at most, says
// otherwise.
type OpenFunc func(t testing.TB, contents ...Contents) sqldb.Options

// Run runs the suite.
func Run(t *testing.T, open OpenFunc) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, OpenFunc){
		"Lifecycle":   testLifecycle,
		"Write":       testWrite,
		"Account":     testAccount,
		"Credential":  testCredential,
		"Session":     testSession,
		"Member":      testMember,
		"Invitation":  testInvitation,
		"Tenant":      testTenant,
		"Rotation":    testRotation,
		"AuditLog":    testAuditLog,
		"Sweep":       testSweep,
		"Constraints": testConstraints,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// raw opens the store beside sqldb, to look at rows and to break them.
func raw(t testing.TB, o sqldb.Options) *sql.DB {
	t.Helper()
	driver, source := "sqlite", "file:"+o.Path+"?_busy_timeout=10000&_foreign_keys=1"
	if o.URL != "" {
		driver, source = "pgx", o.URL
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// exec runs a statement that must succeed.
func exec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// count returns the number a query yields.
func count(t testing.TB, db *sql.DB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
