package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/crash"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// generationFile holds the folder's generation. Copies of a database have one
// identity, so only this tells them apart: the database has noted every
// generation of its folders before the folder has it, at each start and after
// each backup. One that does not know the folder's is of before that, and would
// do keyed work again that was done since; or it was served by another folder.
const generationFile = "GENERATION"

// generations is a database that notes them, or a snapshot of one.
type generations interface {
	HasGeneration(ctx context.Context, g sqldb.Generation) (bool, error)
}

// readGeneration returns the folder's generation. A folder that was never
// served, or by an earlier version, has none: zero.
func (f folder) readGeneration() (g sqldb.Generation, err error) {
	content, err := os.ReadFile(f.path(generationFile))
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("read %s: %w", generationFile, err)
	}
	text, err := hex.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(text) != len(g) {
		return g, refuse("%s is malformed; restore it from a backup of this folder", generationFile)
	}
	return sqldb.Generation(text), nil
}

func writeGeneration(path string, g sqldb.Generation) error {
	return atomicfile.Write(path, []byte(hex.EncodeToString(g[:])+"\n"))
}

// checkGeneration refuses a database that does not know the folder's generation,
// and says what helps.
func checkGeneration(ctx context.Context, db generations, g sqldb.Generation, hint string) error {
	if g == (sqldb.Generation{}) {
		return nil
	}
	known, err := db.HasGeneration(ctx, g)
	if err != nil {
		return err
	}
	if !known {
		return refuse("the accounts are older than this folder, or a copy that was served elsewhere: %s", hint)
	}
	return nil
}

// generationHint is what helps at a start.
const generationHint = "use the database that the folder was served with last; if that is lost, remove " + generationFile +
	", and what was done by a key since may be done again"

// beginGeneration has the database note a new generation, and then the folder.
func (f folder) beginGeneration(ctx context.Context, db *sqldb.DB) error {
	var g sqldb.Generation
	// Reading from this source cannot fail.
	_, _ = rand.Read(g[:])
	if err := db.CreateGeneration(ctx, g); err != nil {
		return err
	}
	crash.Point("generation.noted")
	return writeGeneration(f.path(generationFile), g)
}
