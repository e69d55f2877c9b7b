package execution

import (
	"context"
	"time"
)

// keepAlive is how often somebody who follows hears something at least.
const keepAlive = 15 * time.Second

// Follow tells what happens to an execution, beginning with what it is now,
// until it has ended, the context ends or tell fails. An event without a type
// says only that the connection lives. Faults: not_found.
func (s *Service) Follow(ctx context.Context, projectID, executionID string, tell func(Event) error) error {
	w := s.engine.hub.watch(executionID)
	defer w.stop()
	x, err := s.Get(ctx, projectID, executionID)
	if err != nil {
		return err
	}
	last := x.Status
	if err := tell(Event{Type: "execution", Execution: &x}); err != nil || last.Ended() {
		return err
	}
	look, alive := time.NewTicker(lookAgain), time.NewTicker(keepAlive)
	defer look.Stop()
	defer alive.Stop()
	for !last.Ended() {
		var e Event
		select {
		case e = <-w.events:
		case end := <-w.ended:
			if err := drain(w, tell); err != nil {
				return err
			}
			e = Event{Type: "execution", Execution: &end}
		case <-look.C:
			now, err := s.Get(ctx, projectID, executionID)
			if err != nil {
				return err
			}
			if now.Status == last {
				continue
			}
			if now.Status.Ended() {
				if err := drain(w, tell); err != nil {
					return err
				}
			}
			e = Event{Type: "execution", Execution: &now}
		case <-alive.C:
		case <-s.engine.draining.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
		if e.Execution != nil {
			last = e.Execution.Status
		}
		if err := tell(e); err != nil {
			return err
		}
	}
	return nil
}

// drain tells what has happened before the end.
func drain(w *watch, tell func(Event) error) error {
	for {
		select {
		case e := <-w.events:
			if err := tell(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}
