package faultproxy

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ParseFaults reads faults as a command line has them: name=probability, with
// commas between, and a duration after a colon for delay (the longest), 429
// (its Retry-After) and reorder (the longest): drop-answer=0.05,429=0.02:2s.
func ParseFaults(text string) (Faults, error) {
	f := Faults{MaxDelay: time.Second, RetryAfter: time.Second, MaxReorder: DefaultMaxReorder}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if err := setFault(&f, part); err != nil {
			return Faults{}, fmt.Errorf("fault %q: %w", part, err)
		}
	}
	if err := f.validate(); err != nil {
		return Faults{}, err
	}
	return f, nil
}

// setFault reads one fault.
func setFault(f *Faults, part string) error {
	name, value, ok := strings.Cut(part, "=")
	if !ok {
		return errors.New("it is not like name=0.05")
	}
	value, rest, timed := strings.Cut(value, ":")
	probability, duration := fieldOf(f, name)
	if probability == nil {
		return errors.New("there is no such fault: drop-request, drop-answer, reset, truncate, delay, duplicate, reorder, 429, 500 or 503")
	}
	p, err := strconv.ParseFloat(value, 64)
	if err != nil || p < 0 || p > 1 {
		return errors.New("a probability is a number from 0 to 1")
	}
	*probability = p
	if !timed {
		return nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d <= 0 || duration == nil {
		return errors.New("only delay, 429 and reorder have a duration, like 500ms")
	}
	*duration = d
	return nil
}

// fieldOf returns where a fault is kept, and its duration if it has one.
func fieldOf(f *Faults, name string) (probability *float64, duration *time.Duration) {
	switch fault(name) {
	case dropRequest:
		return &f.DropRequest, nil
	case dropAnswer:
		return &f.DropAnswer, nil
	case cutWithin:
		return &f.Reset, nil
	case truncate:
		return &f.Truncate, nil
	case duplicate:
		return &f.Duplicate, nil
	case reorder:
		return &f.Reorder, &f.MaxReorder
	case tooMany:
		return &f.TooMany, &f.RetryAfter
	case serverError:
		return &f.ServerError, nil
	case unavailable:
		return &f.Unavailable, nil
	case "delay":
		return &f.Delay, &f.MaxDelay
	default:
		return nil, nil
	}
}

// ParseMatch reads patterns like "POST /v1/*" or "/v1/track": a method, if
// only that is meant, and a path in which * stands for anything. A request
// matches if one pattern does.
func ParseMatch(patterns []string) (func(*http.Request) bool, error) {
	type pattern struct{ method, path string }
	parsed := make([]pattern, 0, len(patterns))
	for _, text := range patterns {
		method, path, ok := strings.Cut(strings.TrimSpace(text), " ")
		if !ok {
			method, path = "", method
		}
		if path = strings.TrimSpace(path); !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "*") {
			return nil, fmt.Errorf("the pattern %q is not like POST /v1/*", text)
		}
		parsed = append(parsed, pattern{method, path})
	}
	return func(r *http.Request) bool {
		for _, p := range parsed {
			if (p.method == "" || strings.EqualFold(p.method, r.Method)) && glob(p.path, r.URL.Path) {
				return true
			}
		}
		return false
	}, nil
}

// glob reports whether a path is like a pattern in which * stands for anything.
func glob(pattern, path string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == path
	}
	rest, ok := strings.CutPrefix(path, parts[0])
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if ok = ok && at >= 0; !ok {
			return false
		}
		rest = rest[at+len(part):]
	}
	return ok && strings.HasSuffix(rest, parts[len(parts)-1])
}
