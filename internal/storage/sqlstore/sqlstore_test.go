package sqlstore_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(alertChildURL) != "" {
		fmt.Fprintln(os.Stderr, "the child was not killed:", alertChild())
		os.Exit(1)
	}
	pgtest.Main(m)
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, storagetest.SQLite)
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, storagetest.PostgreSQL)
}
