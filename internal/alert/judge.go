package alert

// Sample is the metric in one period.
type Sample struct {
	Value float64
	// Volume is how many items a rate is of; it counts for rates only.
	Volume float64
	// Known is false if nothing is known of the period.
	Known bool
}

// Observation is what there is to judge a period by.
type Observation struct {
	Current Sample
	// Baseline are the periods that it is compared with; those that are not
	// known do not count.
	Baseline []Sample
}

// Judge says what a period was. It is pure: the same observation always gets
// the same judgement.
//
//   - A value above (below) a threshold is bad; one that equals it is good.
//   - A change is bad if the value is at least so many per cent above (below)
//     the baseline, the mean of the periods of it that are known.
//   - Where both the value and the baseline are below the minimum, a change is
//     good: small numbers change by much.
//   - Above a baseline of 0 every value is an increase without bounds; nothing
//     is a decrease from it.
//   - A rate of fewer items than the minimum, or of none, is not known.
func (d *Definition) Judge(o Observation) Judgement {
	c := &d.Condition
	switch {
	case !o.Current.Known:
		return Judgement{Verdict: Unknown, Problem: NoData}
	case d.tooFew(&o.Current):
		return Judgement{Verdict: Unknown, Problem: NoData}
	case c.Type == Threshold:
		return Judgement{Verdict: verdictOf(c.crossed(o.Current.Value)), Value: &o.Current.Value}
	}
	baseline, ok := mean(o.Baseline)
	if !ok {
		return Judgement{Verdict: Unknown, Problem: NoBaseline, Value: &o.Current.Value}
	}
	small := !d.Kind.isRate() && max(o.Current.Value, baseline) < c.Minimum
	return Judgement{
		Verdict: verdictOf(!small && c.changed(o.Current.Value, baseline)), Value: &o.Current.Value, Baseline: &baseline,
	}
}

// tooFew says that a rate is of too few items to be known.
func (d *Definition) tooFew(s *Sample) bool {
	return d.Kind.isRate() && s.Volume < max(d.Condition.Minimum, 1)
}

func verdictOf(bad bool) Verdict {
	if bad {
		return Bad
	}
	return Good
}

// crossed says whether a value lies beyond the threshold.
func (c *Condition) crossed(value float64) bool {
	if c.Direction == Above {
		return value > c.Value
	}
	return value < c.Value
}

// changed says whether a value differs from the baseline by the percentage.
// It does not divide: the baseline may be 0.
func (c *Condition) changed(value, baseline float64) bool {
	if c.Direction == Down {
		value, baseline = -value, -baseline
	}
	grown := (value - baseline) * percent
	return grown > 0 && grown >= c.Percent*abs(baseline)
}

func abs(v float64) float64 { return max(v, -v) }

// mean is that of the samples that are known, and whether there are any.
func mean(samples []Sample) (float64, bool) {
	sum, n := 0.0, 0.0
	for _, s := range samples {
		if s.Known {
			sum, n = sum+s.Value, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / n, true
}
