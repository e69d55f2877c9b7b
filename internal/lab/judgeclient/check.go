package judgeclient

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actionpulse/actionpulse/internal/lab/report"
)

// Check is one rule and how it is judged.
type Check struct {
	// ID names it for good; Title is the rule, Source where it comes from.
	ID, Title, Source string
	// How says in a sentence how it is judged.
	How string
	// Profiles are those that it is about.
	Profiles []Profile

	judge func(*findings)
}

// findings are what a rule found in the records.
type findings struct {
	params  *Params
	records []*Record
	// good, bad and doubt are evidence that the rule was kept, was broken,
	// and that there was an occasion which shows neither.
	good, bad, doubt []string
	// why says why there was no occasion.
	why string
}

func (f *findings) kept(format string, args ...any) {
	f.good = append(f.good, fmt.Sprintf(format, args...))
}

func (f *findings) broken(r *Record, format string, args ...any) {
	f.bad = append(f.bad, "scenario "+r.Scenario.Name+": "+fmt.Sprintf(format, args...))
}

func (f *findings) unclear(format string, args ...any) {
	f.doubt = append(f.doubt, fmt.Sprintf(format, args...))
}

// none says why nothing was seen; the first reason counts.
func (f *findings) none(format string, args ...any) {
	if f.why == "" {
		f.why = fmt.Sprintf(format, args...)
	}
}

// maxEvidence is how many lines of evidence are kept.
const maxEvidence = 5

// verdict is the worst that the evidence allows: a failure outweighs all, and
// doubt is only heard where nothing speaks for the client.
func (f *findings) verdict() (report.Verdict, []string) {
	switch {
	case len(f.bad) > 0:
		return report.Fail, cap5(f.bad)
	case len(f.good) > 0:
		return report.Pass, cap5(append(f.good, f.doubt...))
	case len(f.doubt) > 0:
		return report.Inconclusive, cap5(f.doubt)
	default:
		if f.why == "" {
			f.why = "nothing in the scenarios played gave an occasion"
		}
		return report.NotTested, []string{f.why}
	}
}

// cap5 drops repeated lines, and all after the fifth.
func cap5(lines []string) []string {
	var out []string
	left := 0
	for _, line := range lines {
		switch {
		case slices.Contains(out, line):
		case len(out) == maxEvidence:
			left++
		default:
			out = append(out, line)
		}
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("… and %d more", left))
	}
	return out
}

// Checks are all rules, in the order in which they are reported.
func Checks() []Check {
	return slices.Concat(identityChecks(), repeatChecks(), delayChecks(), refusalChecks(), bufferChecks(), sessionChecks())
}

// ChecksOf are the rules of a profile.
func ChecksOf(p Profile) []Check {
	return slices.DeleteFunc(Checks(), func(c Check) bool { return !slices.Contains(c.Profiles, p) })
}

// Judge applies the rules of the profile to what was seen.
func Judge(p *Params, records []*Record) []report.Check {
	var out []report.Check
	for _, c := range ChecksOf(p.Profile) {
		f := &findings{params: p, records: records}
		if silent(records) {
			f.none("no request of this profile ever came: is the command sending to $ACTIONPULSE_URL, and what the profile asks for?")
			if problem := firstProblem(records); problem != "" {
				f.why = "no request could be read: " + problem
			} else if said := lastWords(records); said != "" {
				f.why += " " + said
			}
		} else {
			c.judge(f)
		}
		verdict, evidence := f.verdict()
		out = append(out, report.Check{ID: c.ID, Title: c.Title, Source: c.Source, Verdict: verdict, Evidence: evidence})
	}
	return out
}

// silent reports whether no request carried anything to judge.
func silent(records []*Record) bool {
	for _, r := range records {
		for _, request := range r.Requests {
			if len(request.Items) > 0 {
				return false
			}
		}
	}
	return true
}

// lastWords say how the first run of a silent client ended.
func lastWords(records []*Record) string {
	for _, r := range records {
		if exit := r.exit(1); exit.Known && (exit.Code != 0 || exit.Output != "") {
			return fmt.Sprintf("It exited with %d and printed %q.", exit.Code, short(strings.TrimSpace(exit.Output)))
		}
	}
	return ""
}

func firstProblem(records []*Record) string {
	for _, r := range records {
		for _, request := range r.Requests {
			if request.Problem != "" {
				return fmt.Sprintf("%s %s: %s", request.Method, short(request.Path), request.Problem)
			}
		}
	}
	return ""
}
