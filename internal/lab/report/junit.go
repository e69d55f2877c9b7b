package report

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"time"
)

// The elements of a JUnit report, as CI systems read them.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string       `xml:"name,attr"`
		Class     string       `xml:"classname,attr"`
		Time      string       `xml:"time,attr"`
		Failure   *junitResult `xml:"failure,omitempty"`
		Skipped   *junitResult `xml:"skipped,omitempty"`
		SystemOut string       `xml:"system-out,omitempty"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as JUnit XML with one suite and one case a check.
// Checks that are inconclusive or were not tested are skipped cases, whose
// message says which of the two; so no CI system takes them for passed ones.
func (r *Report) JUnit(w io.Writer) error {
	c := r.Counts()
	suite := junitSuite{
		Name: r.Tool + ": " + r.Subject, Tests: len(r.Checks), Failures: c.Fail, Skipped: c.Inconclusive + c.NotTested,
		Time:      strconv.FormatFloat(r.Took.Seconds(), 'f', 3, 64),
		Timestamp: r.Started.UTC().Format(time.RFC3339),
		Properties: []junitProperty{
			{"seed", strconv.FormatUint(r.Seed, 10)},
		},
	}
	for _, s := range r.Settings {
		suite.Properties = append(suite.Properties, junitProperty(s))
	}
	for i := range r.Checks {
		suite.Cases = append(suite.Cases, r.Checks[i].junit(r.Tool))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (c *Check) junit(tool string) junitCase {
	evidence := strings.Join(c.Evidence, "\n")
	out := junitCase{Name: c.ID, Class: strings.ReplaceAll(tool, " ", "."), Time: "0"}
	switch c.Verdict {
	case Pass:
		out.SystemOut = evidence
	case Inconclusive, NotTested:
		out.Skipped = &junitResult{Message: string(c.Verdict) + ": " + c.Title, Text: evidence}
	case Fail:
		out.Failure = &junitResult{Message: c.Title, Type: "rule broken", Text: c.Source + "\n" + evidence}
	default:
		out.Failure = &junitResult{Message: c.Title, Type: "no verdict", Text: evidence}
	}
	return out
}
