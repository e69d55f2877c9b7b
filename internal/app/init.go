package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/actionpulse/actionpulse/internal/account"
	"github.com/actionpulse/actionpulse/internal/config"
	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
	"github.com/actionpulse/actionpulse/internal/storage/sqlstore"
)

// InitParams say what to make.
type InitParams struct {
	// Data is the folder, which must be absent or empty but for a settings
	// file.
	Data string
	// Database is a PostgreSQL address, or empty for SQLite in the folder.
	Database config.DatabaseURL
	// SecretKey is as in the settings; if it is empty, the folder gets one.
	SecretKey config.SecretKey
	// Setup says who is made first. It is not looked at by Join.
	Setup account.SetupParams
	Log   *slog.Logger
}

// Init makes a data folder with its first accounts and credentials. The file
// FORMAT is written last: a folder without it is not used. Errors wrap
// ErrRefused if the folder is not free.
func Init(ctx context.Context, p InitParams) (result account.SetupResult, err error) {
	err = folder(p.Data).prepare(func(f folder) error {
		result, err = f.create(ctx, p)
		return err
	})
	return result, err
}

// Join makes the data folder of a further server on a PostgreSQL database that
// other servers use: with events and recordings of its own, and the accounts that
// are there. SecretKey must be that of the others; the folder keeps it. Errors
// wrap ErrRefused if the folder is not free, the database has no accounts or
// newer ones, or the key is another one.
func Join(ctx context.Context, p InitParams) error {
	identity, err := folder(p.Data).joined(ctx, p)
	if err != nil {
		return err
	}
	return folder(p.Data).prepare(func(f folder) error {
		if err := f.writeSecretKey([]byte(p.SecretKey)); err != nil {
			return err
		}
		return f.createStores(ctx, identity, p.Log)
	})
}

// prepare has a folder filled that is absent, or empty but for a settings file.
func (f folder) prepare(fill func(folder) error) error {
	if err := f.claimEmpty(); err != nil {
		return err
	}
	lock, err := f.lock()
	if err != nil {
		return err
	}
	return errors.Join(fill(f), lock.Unlock())
}

// joined returns the identity of a database that can be joined.
func (f folder) joined(ctx context.Context, p InitParams) (identity [16]byte, err error) {
	db, err := sqldb.Open(ctx, f.sqlOptions(p.Database))
	if errors.Is(err, sqldb.ErrMissing) || errors.Is(err, sqldb.ErrNewer) || errors.Is(err, sqldb.ErrChanged) {
		return identity, refuse("the database cannot be joined: %w", err)
	}
	if err != nil {
		return identity, err
	}
	_, err = f.openCipher(ctx, p.SecretKey, sqlstore.New(db).SecretKeyIDs)
	return db.Identity(), errors.Join(err, db.Close())
}

// claimEmpty makes the folder, or makes sure that there is nothing in it.
func (f folder) claimEmpty() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	if _, err := os.Stat(f.path(formatFile)); err == nil {
		return refuse("%s is initialised already", string(f))
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return fmt.Errorf("read the data folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() != settings {
			return refuse("%s is not empty: it holds %s; if an earlier init was cut short, remove it", string(f), e.Name())
		}
	}
	return os.Chmod(string(f), 0o700) //nolint:gosec // a folder
}

func (f folder) create(ctx context.Context, p InitParams) (account.SetupResult, error) {
	var identity [16]byte
	if _, err := rand.Read(identity[:]); err != nil {
		return account.SetupResult{}, fmt.Errorf("make a store identity: %w", err)
	}
	if err := f.makeSecretKey(p.SecretKey, rand.Reader); err != nil {
		return account.SetupResult{}, err
	}
	result, err := f.createAccounts(ctx, p, identity)
	if err != nil {
		return result, err
	}
	return result, f.createStores(ctx, identity, p.Log)
}

// createStores makes what a server has of its own, and FORMAT.
func (f folder) createStores(ctx context.Context, identity [16]byte, log *slog.Logger) error {
	for _, dir := range []string{eventsDir, intakeDir, replaysDir} {
		if err := os.Mkdir(f.path(dir), 0o700); err != nil {
			return fmt.Errorf("make the folder %s: %w", dir, err)
		}
	}
	if err := eventstore.Create(ctx, f.path(eventsDir, eventsFile), identity); err != nil {
		return err
	}
	if err := intakestore.Create(f.intakeOptions(log, nil), identity, intakestore.State{}); err != nil {
		return err
	}
	return f.writeFormat(format{
		Version: FormatVersion, Store: hex.EncodeToString(identity[:]), CreatedAt: time.Now().UTC(),
		Engines: map[string]string{"intake": intakestore.EngineFormat(), "events": eventstore.EngineFormat()},
	})
}

func (f folder) createAccounts(ctx context.Context, p InitParams, identity [16]byte) (account.SetupResult, error) {
	db, err := sqldb.Create(ctx, f.sqlOptions(p.Database), identity)
	if err != nil {
		return account.SetupResult{}, err
	}
	accounts := account.NewService(account.Params{Store: sqlstore.New(db), Clock: time.Now, Random: rand.Reader})
	result, err := accounts.Setup(ctx, p.Setup)
	return result, errors.Join(err, db.Close())
}

func (f folder) sqlOptions(url config.DatabaseURL) sqldb.Options {
	if url != "" {
		return sqldb.Options{URL: string(url), Clock: time.Now}
	}
	return sqldb.Options{Path: f.path(sqliteFile), Clock: time.Now}
}

// intakeOptions names the intake store's places. A nil fatal is for stores
// that are not written to by a server: the error comes back by itself then.
func (f folder) intakeOptions(log *slog.Logger, fatal func(error)) intakestore.Options {
	if fatal == nil {
		fatal = func(err error) { panic(err) } // a one-off command: nobody waits for an answer
	}
	return intakestore.Options{Dir: f.path(intakeDir), Mark: f.path(markFile), Log: log, Fatal: fatal}
}
