package materializer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/record"
)

// maxStarts is how often the process may die at one position before it goes
// more carefully there.
const maxStarts = 3

// attempt remembers on disk, while the process runs, where it began. A crash
// inside the event store's library cannot be caught; it shows only in that the
// next start finds the same position again. After maxStarts such starts the
// items are applied one by one, and after as many more the item that comes
// next is set aside untried.
type attempt struct {
	path  string
	State attemptState
}

type attemptState struct {
	Position uint64 `json:"position"`
	Starts   int    `json:"starts"`
	Careful  bool   `json:"careful"`
}

// begin counts a start at a position.
func begin(path string, position uint64) (*attempt, error) {
	a := &attempt{path: path, State: attemptState{Position: position}}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read attempt: %w", err)
	default:
		var last attemptState
		if json.Unmarshal(content, &last) == nil && last.Position == position {
			a.State = last
		}
	}
	a.State.Starts++
	if !a.State.Careful && a.State.Starts > maxStarts {
		a.State.Careful, a.State.Starts = true, 1
	}
	return a, a.save()
}

func (a *attempt) save() error {
	content, err := json.Marshal(a.State)
	if err != nil {
		return fmt.Errorf("write attempt: %w", err)
	}
	return atomicfile.Write(a.path, content)
}

// at says that the process is about to apply the item after a position.
func (a *attempt) at(position uint64) error {
	if a.State.Position == position {
		return nil
	}
	a.State.Position, a.State.Starts = position, 1
	return a.save()
}

// end forgets the attempt: there was progress, or the process stops as it
// should.
func (a *attempt) end() error {
	if err := os.Remove(a.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove attempt: %w", err)
	}
	return nil
}

// recover applies what the last process left behind, as carefully as the
// number of starts says. It returns with the attempt forgotten, unless there
// was nothing to apply.
func (m *Materializer) recover(ctx context.Context, a *attempt) error {
	target := m.Intake.Durable()
	if !a.State.Careful {
		if m.mark.Position < target && ctx.Err() == nil {
			if _, err := m.step(ctx); err != nil {
				return err
			}
		}
		return a.end()
	}
	m.Log.Warn("the process died repeatedly at one position; going item by item", "position", m.mark.Position+1, "starts", a.State.Starts)
	for m.mark.Position < target && ctx.Err() == nil {
		began := time.Now()
		if err := m.recoverOne(ctx, a); err != nil {
			return err
		}
		m.Observer.Batch(1, time.Since(began))
	}
	return errors.Join(m.trim(), a.end())
}

// recoverOne applies the next record item by item; an item that has killed the
// process too often is set aside.
func (m *Materializer) recoverOne(ctx context.Context, a *attempt) error {
	records, err := m.Intake.Records(m.mark.Position+1, 1)
	if err != nil {
		m.Fatal(err)
		return err
	}
	for _, r := range records {
		for i := range r.Items {
			single := r
			single.Position, single.Items = r.Position+uint64(i), r.Items[i:i+1]
			if err := m.recoverItem(ctx, a, single); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Materializer) recoverItem(ctx context.Context, a *attempt, r record.Record) error {
	if err := a.at(m.mark.Position); err != nil {
		return err
	}
	if a.State.Starts > maxStarts {
		a.State.Starts = 1
		return m.setAside(ctx, r, fmt.Sprintf("the process died %d times while storing it", maxStarts))
	}
	return m.applyOne(ctx, r)
}
