package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// sample is what the runs of one measurement came to.
type sample []float64

// median returns the middle one, or the mean of the two in the middle.
func (s sample) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// percentile returns the value that a share of all do not exceed.
func percentile[T cmp.Ordered](values []T, share float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// format writes the median with the smallest and the largest value.
func (s sample) format(unit string) string {
	if len(s) == 0 {
		return "–"
	}
	if len(s) == 1 {
		return round(s[0]) + " " + unit
	}
	return fmt.Sprintf("%s %s (%s–%s)", round(s.median()), unit, round(slices.Min(s)), round(slices.Max(s)))
}

// round writes a figure with about three digits.
func round(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 10_000:
		return fmt.Sprintf("%.0f k", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// latency writes the median and the 99th percentile of many durations.
func latency(values []time.Duration) string {
	return fmt.Sprintf("p50 %s ms, p99 %s ms", round(milliseconds(percentile(values, 0.5))), round(milliseconds(percentile(values, 0.99))))
}

// row is a line of the report.
type row struct {
	what, goal, measured, cpu, baseline string
	// met is empty where there is no goal.
	met string
}

// met says whether a goal was reached.
func met(yes bool) string {
	if yes {
		return "yes"
	}
	return "**no**"
}
