package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// sample is what several runs have measured.
type sample []float64

func (s sample) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

func (s sample) text() string {
	if s.median() == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f k/s (%.1f–%.1f)", s.median()/1000, slices.Min(s)/1000, slices.Max(s)/1000)
}

// report writes the results as Markdown.
func report(results []result, s settings) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# What keys cost and are worth

Written by `+"`make bench`"+`: the same charge of a balance, over HTTP with %d connections, client and server in one
process, on a file or a PostgreSQL of its own that syncs every commit. Medians of %d runs of %s with the smallest and the
largest; the ratio is to "no key" of the same run.

- %s, %s, %d processors
- load average at the end %s

| form | new keys | ratio | replays | work done twice | refused although done | other body let through | forgotten by a restart |
|---|---|---|---|---|---|---|---|
`, connections, s.runs, s.span, time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), load())
	bare := map[string]float64{}
	for _, r := range results {
		if r.comparesNothing {
			bare[r.engine] = r.fresh.median()
		}
		errors := "– | – | – | –"
		if !r.comparesNothing {
			w := r.wrong
			errors = fmt.Sprintf("%d of %d | %d of %d | %d of %d | %d of %d",
				w.doubled, w.rounds, w.denied, w.rounds*together, w.confused, w.rounds, w.forgotten, w.rounds)
		}
		fmt.Fprintf(&out, "| %s, %s | %s | %.2f | %s | %s |\n",
			r.form, r.engine, r.fresh.text(), r.fresh.median()/bare[r.engine], r.replays.text(), errors)
	}
	fmt.Fprintf(&out, `
How to read it: an account holds the price of exactly one unit of work, and %d equal requests ask for it at once with one
key. Exactly one may do the work, and all must hear of its success; the same key with another price must be refused; a
server that starts anew on the same database must still know. The textbook form looks the key up before its transaction
and inserts it last; on a conflict it looks again. The framework's middleware keeps keys in memory and compares no bodies.
`, together)
	return out.String()
}

func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(content))[:3], " ")
}
