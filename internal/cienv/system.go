package cienv

import (
	"net/url"
	"regexp"
	"strings"
)

// timeForm is how a system writes a time.
type timeForm uint8

const (
	rfc3339 timeForm = iota
	unixSeconds
	unixMilliseconds
)

// system says which variables of a CI/CD system mean what. Of a list of names
// the first that is set counts.
type system struct {
	name, prefix string
	// detect are the variables that give the system away, with the value that
	// they have; empty for any. One is enough.
	detect map[string]string
	// run names the run: each list has to have a value.
	run [][]string
	// step names the step within the run, the same for all legs of a matrix.
	step [][]string

	environment, commit []string
	// url is the address of the run: variables in braces, all of which have to
	// be set.
	url string
	// noURL is a variable with which the address is another one.
	noURL []string

	ts     string
	tsForm timeForm
	// waits is a variable that says that the step waits for somebody: the run
	// may then be days older than the deploy.
	waits string
}

func (s *system) detected(v variables) bool {
	for name, want := range s.detect {
		if got := v.get(name); got != "" && (want == "" || strings.EqualFold(got, want)) {
			return true
		}
	}
	return false
}

// read reads what is known of the run.
func (s *system) read(v variables) Run {
	r := Run{System: s.name, prefix: s.prefix, Environment: v.first(s.environment)}
	for _, names := range s.run {
		part := v.first(names)
		if part.Text == "" {
			r.Missing = append(r.Missing, strings.Join(names, " or "))
		}
		r.run = append(r.run, part)
	}
	for _, names := range s.step {
		if part := v.first(names); part.Text != "" {
			r.step = append(r.step, part)
		}
	}
	if c := v.first(s.commit); commitHash.MatchString(c.Text) {
		r.Commit = c
	}
	if v.first(s.noURL).Text == "" {
		r.URL = v.address(s.url)
	}
	if v.get(s.waits) == "" {
		if at := timeOf(v.get(s.ts), s.tsForm); at != "" {
			r.TS = Value{at, []string{s.ts}}
		}
	}
	return r
}

// commitHash is what a commit looks like: a symbolic name such as HEAD is no
// commit, for it may be resolved by the next attempt.
var commitHash = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)

var reference = regexp.MustCompile(`\{([A-Z0-9_]+)\}`)

// address fills in the template of a URL.
func (v variables) address(template string) Value {
	var from []string
	whole := true
	text := reference.ReplaceAllStringFunc(template, func(braced string) string {
		name := strings.Trim(braced, "{}")
		value := v.get(name)
		whole = whole && value != ""
		from = append(from, name)
		return value
	})
	u, err := url.Parse(text)
	if !whole || err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return Value{}
	}
	return Value{u.String(), from}
}
