package alert

import (
	"context"
	"fmt"
	"time"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

const (
	// DefaultPreview is how many periods a preview judges if nothing is said.
	DefaultPreview = 24
	// MaxPreview is the most.
	MaxPreview = 50
	// previewBudget is how long all of its queries may take together.
	previewBudget = 10 * time.Second
)

// Previewed is a period of a preview, and the state that it would have led to.
type Previewed struct {
	Evaluation

	State State
}

// PreviewParams is a definition to be tried on the latest periods.
type PreviewParams struct {
	Definition Definition
	// Project and ProjectMade are the project's number and its creation.
	Project     uint32
	ProjectMade time.Time
	// Periods is how many, at most MaxPreview.
	Periods int
}

// Preview judges the latest periods that are over as an alert would have, and
// stores nothing. The latest comes first. Faults: validation_failed,
// query_timeout.
func (s *Service) Preview(ctx context.Context, p PreviewParams) ([]Previewed, error) {
	d := &p.Definition
	if err := d.Validate(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, previewBudget)
	defer cancel()
	period := d.before(d.At(s.now()))
	all := make([]Previewed, p.Periods)
	for i := range all {
		o, _, err := s.params.Reader.observe(bounded, subject{project: p.Project, made: p.ProjectMade}, d, period)
		if err != nil && bounded.Err() != nil && ctx.Err() == nil {
			return nil, fault.Wrap(api.CodeQueryTimeout, err, "the preview took longer than %s", previewBudget).
				With("hint", "fewer periods, fewer events, or measure count instead of persons")
		}
		if err != nil {
			return nil, fmt.Errorf("preview an alert: %w", err)
		}
		all[i].Evaluation = Evaluation{Period: period, Judgement: d.Judge(o)}
		period = d.before(period)
	}
	d.play(all)
	return all, nil
}

// play has the periods of a preview happen one after the other.
func (d *Definition) play(all []Previewed) {
	a := Alert{Definition: *d, Status: Status{State: OK}}
	step := Step{Alert: &a, NewID: func() (string, error) { return "", nil }}
	for i := len(all) - 1; i >= 0; i-- {
		a.Next, step.At = all[i].Period, all[i].Period.End
		if step.Judge(all[i].Judgement) == nil {
			all[i].State = a.State
		}
	}
}
