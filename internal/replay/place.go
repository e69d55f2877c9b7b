package replay

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// Blobs are in one place: a folder of one server, or a bucket. Which, the store
// says, by an id; and a blob in the place says the same, so that a place that is
// only called alike is not taken for it. The first process with a blob to write
// or to delete makes its place the one. No other writes, deletes or forgets any:
// it would find none of those that are there, and nobody would find its own.
//
// Who copies all blobs to another place copies that one, too. A server that
// starts there makes it the place, under the id of its own: the copy that stays
// behind is none from then on, and who uses it hears so with the next chunk.

// PlaceName names the blob that says which place it is in.
const PlaceName = "place"

// elsewhereRetry is what a sender is told to wait that has come to the wrong
// server: until the operator has changed that.
const elsewhereRetry = 10 * time.Second

// Location is where the blobs are.
type Location struct {
	// ID is that of the place, From that of the one that they were moved from last,
	// or ID.
	ID, From [16]byte
}

// holds says whether a place of an id is this one by the mark that it has, and
// whether it has become that by a copy, which is yet to be noted.
func (p Location) holds(id, mark [16]byte) (here, moved bool) {
	moved = mark != id && (mark == p.ID || id == p.ID && mark == p.From)
	return moved || mark == id && id == p.ID, moved
}

// Home says where the blobs are.
type Home interface {
	// TakePlace says that a place holds the blobs, unless one does already, and
	// returns which does then. It may be repeated.
	TakePlace(ctx context.Context, id [16]byte) (Location, error)
	// FindPlace returns which place holds the blobs, and whether any does yet.
	FindPlace(ctx context.Context) (p Location, found bool, err error)
	// MovePlace says that the blobs of one place are in another, if they were in
	// the former. It may be repeated.
	MovePlace(ctx context.Context, from, to [16]byte) error
}

// PlaceParams say which place is asked for; they are as in [Params].
type PlaceParams struct {
	Store Home
	Blobs Blobs
	Place [16]byte
}

// Settle says whether the blobs are in a place, or in none yet, and else where.
// Those that were copied there are there from now on, and nowhere else.
func Settle(ctx context.Context, p PlaceParams) (place Location, here bool, err error) {
	place, here, moved, err := p.find(ctx)
	if err != nil || !moved {
		return place, here, err
	}
	if place.ID != p.Place { // else who has noted it was killed before it was marked
		err = fault.UntilKnown(func() error { return p.Store.MovePlace(ctx, place.ID, p.Place) })
		if err != nil {
			return place, false, err
		}
		if place, _, err = p.Store.FindPlace(ctx); err != nil || place.ID != p.Place { // moved twice at once
			return place, false, err
		}
	}
	return place, true, p.mark(ctx)
}

// find says whether the blobs are in the place, or in none yet.
func (p PlaceParams) find(ctx context.Context) (place Location, here, moved bool, err error) {
	place, found, err := p.Store.FindPlace(ctx)
	if err != nil || !found {
		return place, true, false, err
	}
	mark, err := MarkIn(ctx, p.Blobs)
	if err != nil {
		return place, false, false, err
	}
	here, moved = place.holds(p.Place, mark)
	return place, here, moved, nil
}

// mark has the place say which it is.
func (p PlaceParams) mark(ctx context.Context) error {
	return p.Blobs.Put(ctx, PlaceName, []byte(hex.EncodeToString(p.Place[:])+"\n"))
}

// MarkIn returns which place blobs say that they are in, zero if they say none.
func MarkIn(ctx context.Context, blobs Blobs) (id [16]byte, err error) {
	content, err := blobs.Get(ctx, PlaceName)
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil
	}
	if err != nil {
		return id, err
	}
	text, err := hex.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(text) != len(id) {
		return id, fmt.Errorf("the blob %s, which says where recordings are, is malformed", PlaceName)
	}
	return [16]byte(text), nil
}

func (s *Service) place() PlaceParams {
	return PlaceParams{Store: s.params.Store, Blobs: s.params.Blobs, Place: s.params.Place}
}

// takeHome makes the place the one that holds the blobs if none does yet, and
// says whether it is that. It asks each time: they may be moved at any time.
func (s *Service) takeHome(ctx context.Context) (here bool, err error) {
	place, found, err := s.params.Store.FindPlace(ctx)
	if err == nil && !found {
		place, err = s.takePlace(ctx)
	}
	if err != nil {
		return false, err
	}
	if here, err = s.isMarked(ctx); err != nil {
		return false, err
	}
	if here = here && place.ID == s.params.Place; !here {
		s.warnOnce.Do(func() {
			s.params.Log.Warn("session recordings are kept in another place, and new ones are refused here: replay.blobs must name one bucket for all servers")
		})
	}
	return here, nil
}

// takePlace marks the place before it may be the one.
func (s *Service) takePlace(ctx context.Context) (place Location, err error) {
	s.taking.Lock()
	defer s.taking.Unlock()
	place, found, err := s.params.Store.FindPlace(ctx)
	if err != nil || found { // somebody was faster
		return place, err
	}
	if err := s.place().mark(ctx); err != nil {
		return place, err
	}
	err = fault.UntilKnown(func() error {
		place, err = s.params.Store.TakePlace(ctx, s.params.Place)
		return err
	})
	return place, err
}

// isMarked says whether the place says itself which it is, as it has once this
// process has seen it.
func (s *Service) isMarked(ctx context.Context) (bool, error) {
	if s.marked.Load() {
		return true, nil
	}
	mark, err := MarkIn(ctx, s.params.Blobs)
	if err == nil && mark == s.params.Place {
		s.marked.Store(true)
	}
	return err == nil && mark == s.params.Place, err
}

// elsewhere says whether the blobs are in another place.
func (s *Service) elsewhere(ctx context.Context) (bool, error) {
	_, here, _, err := s.place().find(ctx)
	return !here && err == nil, err
}

// refuseElsewhere returns the refusal of a new chunk at a server that may not
// keep it, or nil.
func (s *Service) refuseElsewhere(ctx context.Context) error {
	here, err := s.takeHome(ctx)
	if err != nil {
		return refused(err, "it could not be found out where recordings are kept")
	}
	if !here {
		return fault.New(api.CodeInternal,
			"recordings are kept in another place than this server's, and replay.blobs must name one bucket for all servers; nothing was accepted").After(elsewhereRetry)
	}
	return nil
}
