// Package blobstore keeps blobs, files that are written once and read whole, in
// a folder or in a bucket of an object store that speaks S3. It knows nothing
// of what they hold, and it never lists them: which blobs there are is known by
// those who have written them.
//
// Invariants:
//   - a blob is there whole or not at all, and on disk when Put returns;
//   - a blob is never changed: a name is used once;
//   - no name leads out of the folder or the prefix.
package blobstore

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
)

// maxBlob is the largest blob, in bytes.
const maxBlob = 8 << 20

// Store is what each kind of store does. Its methods may be called from many
// goroutines.
type Store interface {
	// Put writes a blob of at most 8 MiB and returns once it is on disk. After an error the blob
	// may be there, whole, or may come to be there while the request is under
	// way that was given up.
	Put(ctx context.Context, name string, content []byte) error
	// Get returns a blob. The error is fs.ErrNotExist if there is none.
	Get(ctx context.Context, name string) ([]byte, error)
	// Delete removes a blob, and what a crash has left of writing it. That there
	// is none is no error.
	Delete(ctx context.Context, name string) error
	// Close gives back what the store holds; no other method is under way.
	Close() error
}

// names are lower-case words with hyphens and dots, in folders.
var names = regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)*(\.[a-z0-9]+)?$`)

// maxName is the longest name, in bytes.
const maxName = 200

func checkName(name string) error {
	if len(name) > maxName || !names.MatchString(name) {
		return fmt.Errorf("%w: %q is no name of a blob", fs.ErrInvalid, name)
	}
	return nil
}
