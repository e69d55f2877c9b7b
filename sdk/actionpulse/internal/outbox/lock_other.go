//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package outbox

import (
	"errors"
	"fmt"
	"io"
	"runtime"
)

// lockFile refuses: without a lock two processes would send the same records.
func lockFile(string) (io.Closer, error) {
	return nil, fmt.Errorf("an outbox in a folder on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
