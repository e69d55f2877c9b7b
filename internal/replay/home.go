package replay

import (
	"context"
	"sync"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Several servers may share a database, but not a folder. Whose folder holds the
// blobs, the database says: the one whose process first has a blob to write or
// to delete. No other one writes, deletes or forgets any: it would find none of
// those that are there, and nobody would find its own.

// elsewhereRetry is what a sender is told to wait that has come to the wrong
// server: until the operator has changed that.
const elsewhereRetry = 10 * time.Second

// Home says whose folder holds the blobs.
type Home interface {
	// TakeFolder says that the folder of a server holds the blobs, unless one does
	// already, and returns whose it is then. It may be repeated.
	TakeFolder(ctx context.Context, server [16]byte) ([16]byte, error)
	// FindFolder returns whose folder holds the blobs, and whether any does yet.
	FindFolder(ctx context.Context) (server [16]byte, found bool, err error)
}

// home is what a service has found out of whose folder holds the blobs; that
// does not change any more.
type home struct {
	mu          sync.Mutex
	known, here bool
}

// takeHome makes the folder the one that holds the blobs if none does yet, and
// says whether it is that. It asks the store until there is an answer, once.
func (s *Service) takeHome(ctx context.Context) (here bool, err error) {
	return s.askHome(func() (server [16]byte, found bool, err error) {
		err = fault.UntilKnown(func() error {
			server, err = s.params.Store.TakeFolder(ctx, s.params.Server)
			return err
		})
		return server, true, err
	})
}

// elsewhere says whether the folder of another server holds the blobs.
func (s *Service) elsewhere(ctx context.Context) (bool, error) {
	here, err := s.askHome(func() ([16]byte, bool, error) { return s.params.Store.FindFolder(ctx) })
	return !here, err
}

// askHome asks, unless the answer is known.
func (s *Service) askHome(ask func() (server [16]byte, found bool, err error)) (here bool, err error) {
	if s.params.Server == ([16]byte{}) {
		return true, nil
	}
	s.home.mu.Lock()
	defer s.home.mu.Unlock()
	if s.home.known {
		return s.home.here, nil
	}
	server, found, err := ask()
	if err != nil || !found {
		return true, err
	}
	s.home.known, s.home.here = true, server == s.params.Server
	if !s.home.here {
		s.params.Log.Warn("session recordings are kept in the folder of another server, and new ones are refused here: replay.blobs must name a bucket for all servers")
	}
	return s.home.here, nil
}

// refuseElsewhere returns the refusal of a new chunk at a server that may not
// keep it, or nil.
func (s *Service) refuseElsewhere(ctx context.Context) error {
	here, err := s.takeHome(ctx)
	if err != nil {
		return refused(err, "it could not be found out whose folder holds the recordings")
	}
	if !here {
		return fault.New(api.CodeInternal,
			"recordings are kept in the folder of another server, and replay.blobs must name a bucket for all servers; nothing was accepted").After(elsewhereRetry)
	}
	return nil
}
