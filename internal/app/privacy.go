package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/intakestore"
	"github.com/actionpulse/actionpulse/internal/privacy"
	"github.com/actionpulse/actionpulse/internal/record"
	"github.com/actionpulse/actionpulse/internal/storage/privacystore"
)

// exportsDir is where the archives of exports are, within a data folder.
const exportsDir = "exports"

// privacyLease is how long a privacy job stays with a server of several that
// says nothing any more.
const privacyLease = 15 * time.Second

// privacyJobs are the jobs about persons, and the worker that does them.
type privacyJobs struct {
	service *privacy.Service
	worker  *privacy.Worker
}

// openPrivacy makes the jobs, of which none is done before the worker runs.
func (s *server) openPrivacy() {
	archives := s.stores.archives
	store := privacystore.New(s.stores.sql)
	params := privacy.WorkerParams{
		Queue: store, Archives: archives, Intake: privacyIntake{s.intake, s.stores.intake, &s.still}, Events: privacyEvents{s.stores.events},
		Replays: privacyReplays{s.services.replays}, Customers: privacyCustomers{
			Store: store, services: s.services,
			CustomerReader: privacy.CustomerReader{Customers: s.services.customers, Books: s.services.books, Executions: s.services.executions},
		},
		KeepArchives: s.params.Config.Privacy.ExportRetention, Guard: s.space.guard, Clock: s.params.Now, Random: rand.Reader, Log: s.params.Log,
	}
	// Reading from this source cannot fail.
	_, _ = rand.Read(params.Owner[:])
	if s.params.Config.Database != "" { // others may share it
		params.LeaseFor = privacyLease
	}
	s.privacy.worker = privacy.NewWorker(params)
	s.privacy.service = privacy.NewService(privacy.Params{
		Store: store, Archives: archives, Alone: params.LeaseFor == 0, Guard: s.space.guard, Clock: s.params.Now, Random: rand.Reader,
		Wake: s.privacy.worker.Wake,
	})
}

// privacyIntake is intake and its store, as privacy jobs see them.
type privacyIntake struct {
	service *intake.Service
	store   *intakestore.Store
	still   *still
}

func (i privacyIntake) Erase(ctx context.Context, project uint32, p privacy.Person) (uint64, error) {
	i.still.erasing.RLock() // a backup has its copy of the log, and not yet that of the job
	defer i.still.erasing.RUnlock()
	return i.service.Erase(ctx, project, record.Person(p))
}

func (i privacyIntake) Decided() (position uint64, at int64) { return i.service.Decided() }

// Purge trims the records itself: the materializer does so when it comes to
// further ones, which may be never.
func (i privacyIntake) Purge(ctx context.Context, position uint64) error {
	if err := i.store.Trim(position); err != nil {
		return err
	}
	return i.store.Purge(ctx)
}

// privacyEvents is the event store, as privacy jobs see it.
type privacyEvents struct{ *eventstore.Store }

func (e privacyEvents) Stored(ctx context.Context) (uint64, error) {
	mark, err := e.Mark(ctx)
	return mark.Position, err
}

func (e privacyEvents) Erased(ctx context.Context, project uint32, p privacy.Person, position uint64) (privacy.Erasure, error) {
	state, err := e.ErasureState(ctx, project, record.Person(p), position)
	switch state {
	case eventstore.ErasureApplied:
		return privacy.ErasureApplied, err
	case eventstore.ErasureMissing:
		return privacy.ErasureMissing, err
	default:
		return privacy.ErasureWaiting, err
	}
}

func (e privacyEvents) Spans(ctx context.Context, project uint32, userID string) ([]privacy.Span, error) {
	found, err := e.Store.Spans(ctx, project, userID)
	spans := make([]privacy.Span, len(found))
	for i, s := range found {
		spans[i] = privacy.Span(s)
	}
	return spans, err
}

func (e privacyEvents) Taken(ctx context.Context, project uint32, p privacy.Person, position uint64) ([]privacy.Taken, error) {
	found, err := e.Store.Taken(ctx, project, record.Person(p), position)
	taken := make([]privacy.Taken, len(found))
	for i, t := range found {
		taken[i] = privacy.Taken{Person: privacy.Person(t.Person), From: t.From, To: t.To}
	}
	return taken, err
}

func (e privacyEvents) KeepTaken(ctx context.Context, project uint32, p privacy.Person, position uint64, others []privacy.Person) error {
	all := make([]eventstore.Person, len(others))
	for i, one := range others {
		all[i] = eventstore.Person(one)
	}
	return e.Store.KeepTaken(ctx, eventstore.TakenParams{Project: project, Person: record.Person(p), Position: position, Others: all})
}

func (e privacyEvents) ForgetTaken(ctx context.Context, project uint32, p privacy.Person, position uint64) error {
	return e.Store.ForgetTaken(ctx, project, record.Person(p), position)
}

// privacyCustomers is what the database keeps of customers, as privacy jobs see
// it.
type privacyCustomers struct {
	*privacystore.Store
	privacy.CustomerReader

	services *services
}

// RedactCustomer also has this server and the others forget what they remember
// of executions that have ended.
func (c privacyCustomers) RedactCustomer(ctx context.Context, p privacy.RedactParams) (privacy.Redaction, error) {
	done, err := c.Store.RedactCustomer(ctx, p)
	if err != nil || done.Changed == 0 {
		return done, err
	}
	c.services.executions.ForgetEnded()
	if err := c.services.db.Announce(ctx); err != nil {
		return privacy.Redaction{}, fmt.Errorf("tell other servers to forget: %w", err)
	}
	return done, nil
}
