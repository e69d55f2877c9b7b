package alert

import (
	"context"
	"slices"
	"time"

	"github.com/actionpulse/actionpulse/internal/query"
)

// Querier answers what events in windows count to; see query.Service.
type Querier interface {
	Totals(ctx context.Context, q query.Totals) (values []int64, stored time.Time, err error)
}

// Reader reads metrics.
type Reader struct {
	Querier Querier
	Health  *Health
}

// subject is whose metric is read.
type subject struct {
	project uint32
	// made is when the project was made: before that it has no events but
	// those that were imported.
	made time.Time
	// judged are the values of earlier periods by their start, which outlive
	// the process that has counted them.
	judged map[time.Time]float64
}

// observe reads a period and its baseline. What was acknowledged before stored
// is in it; for the health of intake stored is zero. Errors are those of
// query.Service.
func (r *Reader) observe(ctx context.Context, s subject, d *Definition, p Period) (o Observation, stored time.Time, err error) {
	if d.Kind != Trend {
		return r.health(&s, d, p), time.Time{}, nil
	}
	metric, err := d.parse()
	if err != nil {
		return o, time.Time{}, err
	}
	periods := append(d.baseline(p), p)
	slices.SortFunc(periods, func(a, b Period) int { return a.Start.Compare(b.Start) })
	windows := make([]query.Window, len(periods))
	for i := range periods {
		windows[i] = periods[i].window()
	}
	values, stored, err := r.Querier.Totals(ctx, query.Totals{Project: s.project, Metric: metric, Windows: windows})
	if err != nil {
		return o, time.Time{}, err //nolint:wrapcheck // the caller shows its code
	}
	last := len(values) - 1
	o.Current = Sample{Value: float64(values[last]), Known: true}
	for i, v := range values[:last] {
		// Before the project was made no events mean that nobody counted.
		o.Baseline = append(o.Baseline, Sample{Value: float64(v), Known: v > 0 || periods[i].End.After(s.made)})
	}
	return o, stored, nil
}

// health reads the health of intake. What was judged once counts in a baseline
// as it was judged; the rest as far as this process knows it.
func (r *Reader) health(s *subject, d *Definition, p Period) Observation {
	o := Observation{Current: r.Health.Sample(d.Kind, s.project, p)}
	for _, b := range d.baseline(p) {
		sample := r.Health.Sample(d.Kind, s.project, b)
		if d.tooFew(&sample) {
			sample.Known = false
		}
		if value, ok := s.judged[b.Start]; ok {
			sample = Sample{Value: value, Known: true}
		}
		o.Baseline = append(o.Baseline, sample)
	}
	return o
}
