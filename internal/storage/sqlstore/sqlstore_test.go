package sqlstore_test

import (
	"os"
	"testing"

	"github.com/actionpulse/actionpulse/internal/storage/pgtest"
	"github.com/actionpulse/actionpulse/internal/storage/storagetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(alertChildURL) != "" {
		os.Exit(alertChild())
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
