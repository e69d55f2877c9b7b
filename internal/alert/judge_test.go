package alert_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/actionpulse/actionpulse/internal/alert"
)

func known(v float64) alert.Sample { return alert.Sample{Value: v, Known: true} }

func rate(v, volume float64) alert.Sample { return alert.Sample{Value: v, Volume: volume, Known: true} }

func samples(values ...float64) []alert.Sample {
	all := make([]alert.Sample, len(values))
	for i, v := range values {
		all[i] = known(v)
	}
	return all
}

// TestJudge: the rule by which a period is bad, at its edges.
func TestJudge(t *testing.T) {
	t.Parallel()
	above, below := alert.Condition{Type: alert.Threshold, Direction: alert.Above, Value: 10}, alert.Condition{Type: alert.Threshold, Direction: alert.Below, Value: 10}
	up := alert.Condition{Type: alert.Change, Direction: alert.Up, Percent: 50, Baseline: alert.PreviousPeriod, Minimum: 10}
	down := alert.Condition{Type: alert.Change, Direction: alert.Down, Percent: 50, Baseline: alert.PreviousPeriod, Minimum: 10}
	gone := down
	gone.Percent = 100
	rates := above
	rates.Value, rates.Minimum = 0.5, 10
	for _, c := range []struct {
		name      string
		kind      alert.Kind
		condition alert.Condition
		current   alert.Sample
		baseline  []alert.Sample
		want      alert.Verdict
		problem   alert.Problem
	}{
		{"above", alert.Trend, above, known(11), nil, alert.Bad, ""},
		{"at the threshold, above", alert.Trend, above, known(10), nil, alert.Good, ""},
		{"below", alert.Trend, below, known(9), nil, alert.Bad, ""},
		{"at the threshold, below", alert.Trend, below, known(10), nil, alert.Good, ""},
		{"nothing is a value", alert.Trend, below, known(0), nil, alert.Bad, ""},
		{"not known", alert.Trend, below, alert.Sample{}, nil, alert.Unknown, alert.NoData},

		{"up by exactly the percentage", alert.Trend, up, known(150), samples(100), alert.Bad, ""},
		{"up by less", alert.Trend, up, known(149), samples(100), alert.Good, ""},
		{"down where up is bad", alert.Trend, up, known(1), samples(100), alert.Good, ""},
		{"down by exactly the percentage", alert.Trend, down, known(50), samples(100), alert.Bad, ""},
		{"down by less", alert.Trend, down, known(51), samples(100), alert.Good, ""},
		{"down to nothing", alert.Trend, down, known(0), samples(100), alert.Bad, ""},
		{"all of it has gone", alert.Trend, gone, known(0), samples(100), alert.Bad, ""},
		{"nearly all of it has gone", alert.Trend, gone, known(1), samples(100), alert.Good, ""},
		{"no change", alert.Trend, up, known(100), samples(100), alert.Good, ""},

		{"from nothing to nothing, up", alert.Trend, up, known(0), samples(0), alert.Good, ""},
		{"from nothing to nothing, down", alert.Trend, down, known(0), samples(0), alert.Good, ""},
		{"from nothing to something", alert.Trend, up, known(10), samples(0), alert.Bad, ""},
		{"from nothing to too little", alert.Trend, up, known(9), samples(0), alert.Good, ""},
		{"from nothing to something, down", alert.Trend, down, known(10), samples(0), alert.Good, ""},
		{"small numbers, up", alert.Trend, up, known(9), samples(1), alert.Good, ""},
		{"small numbers, down", alert.Trend, down, known(1), samples(9), alert.Good, ""},
		{"the baseline is no small number", alert.Trend, down, known(1), samples(10), alert.Bad, ""},
		{"the value is no small number", alert.Trend, up, known(10), samples(1), alert.Bad, ""},

		{"a mean", alert.Trend, up, known(150), samples(50, 100, 150), alert.Bad, ""},
		{"a mean with zeros", alert.Trend, up, known(75), samples(0, 150, 0), alert.Bad, ""},
		{"what is not known does not count", alert.Trend, up, known(150), []alert.Sample{known(100), {Value: 1e9}}, alert.Bad, ""},
		{"nothing of the baseline is known", alert.Trend, up, known(150), []alert.Sample{{}, {}}, alert.Unknown, alert.NoBaseline},
		{"no baseline", alert.Trend, up, known(150), nil, alert.Unknown, alert.NoBaseline},

		{"a rate", alert.DuplicateRate, rates, rate(0.6, 10), nil, alert.Bad, ""},
		{"a rate of too few items", alert.DuplicateRate, rates, rate(0.6, 9), nil, alert.Unknown, alert.NoData},
		{"a rate of nothing", alert.RejectionRate, above, rate(0, 0), nil, alert.Unknown, alert.NoData},
		{"a rate that has doubled", alert.RejectionRate, up, rate(0.02, 1000), samples(0.01), alert.Bad, ""},
		{"a rate from nothing", alert.RejectionRate, up, rate(0.02, 1000), samples(0), alert.Bad, ""},
		{"a lag", alert.LagSeconds, above, known(10.5), nil, alert.Bad, ""},
	} {
		d := alert.Definition{Source: alert.Source{Kind: c.kind}, Condition: c.condition}
		j := d.Judge(alert.Observation{Current: c.current, Baseline: c.baseline})
		if j.Verdict != c.want || j.Problem != c.problem || (j.Verdict == alert.Unknown) != (j.Problem != "") {
			t.Errorf("%s: %s %s, want %s %s", c.name, j.Verdict, j.Problem, c.want, c.problem)
		}
		if change := j.Change(); change != nil && (math.IsNaN(*change) || math.IsInf(*change, 0)) {
			t.Errorf("%s: a change of %v", c.name, *change)
		}
	}
}

// TestJudgeIsMonotonic: what is further on the bad side is not better, and a
// sharper condition does not find less.
func TestJudgeIsMonotonic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(0, 1e6)
		up := rapid.Bool().Draw(t, "up")
		c := alert.Condition{Type: alert.Change, Direction: alert.Down, Percent: rapid.Float64Range(0.1, 100).Draw(t, "percent"), Minimum: number.Draw(t, "minimum")}
		if up {
			c.Direction = alert.Up
		}
		baseline := rapid.SliceOfN(number, 1, 5).Draw(t, "baseline")
		value, more := number.Draw(t, "value"), rapid.Float64Range(0, 1e5).Draw(t, "more")
		judge := func(c alert.Condition, v float64) alert.Verdict {
			d := alert.Definition{Source: alert.Source{Kind: alert.Trend}, Condition: c}
			return d.Judge(alert.Observation{Current: known(v), Baseline: samples(baseline...)}).Verdict
		}
		verdict := judge(c, value)
		if verdict == alert.Unknown {
			t.Fatalf("it is not known")
		}
		further := value + more
		if !up {
			further = max(0, value-more)
		}
		if up && verdict == alert.Bad && judge(c, further) != alert.Bad {
			t.Fatalf("%v is bad, and %v is not", value, further)
		}
		// Downwards the minimum does not matter once the baseline has it.
		if !up && verdict == alert.Bad && judge(c, further) != alert.Bad && sum(baseline)/float64(len(baseline)) >= c.Minimum {
			t.Fatalf("%v is bad, and %v is not", value, further)
		}
		sharper := c
		sharper.Percent, sharper.Minimum = c.Percent/2, c.Minimum/2
		if verdict == alert.Bad && judge(sharper, value) != alert.Bad {
			t.Fatalf("%+v finds %v bad, and %+v does not", c, value, sharper)
		}
	})
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}
