package faultproxy

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Entry is one line of a log: a request and its fate. Times are milliseconds,
// AtMS since the proxy began.
type Entry struct {
	N       uint64 `json:"n"`
	AtMS    int64  `json:"at_ms"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Request string `json:"request"`
	// Repeat is how often that very request came before.
	Repeat uint64 `json:"repeat"`
	Fault  string `json:"fault"`
	// Coin and Second are the variants of a fault; see the command's help.
	Coin         bool  `json:"coin,omitempty"`
	Second       bool  `json:"second,omitempty"`
	BeforeMS     int64 `json:"before_ms,omitempty"`
	AfterMS      int64 `json:"after_ms,omitempty"`
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	ReorderMS    int64 `json:"reorder_ms,omitempty"`
	// Overtaken says that a later request was delivered before this one.
	Overtaken bool `json:"overtaken,omitempty"`
	// Deliveries is how often the server was asked, Status what it or the
	// proxy answered, 0 if nothing.
	Deliveries  int  `json:"deliveries"`
	Status      int  `json:"status,omitempty"`
	Unreachable bool `json:"unreachable,omitempty"`
}

// newEntry describes a request before it has met its fate. The query of its
// path may hold a secret, and is left out.
func newEntry(r *http.Request, a arrival, f fate) *Entry {
	return &Entry{
		N: a.n, AtMS: a.at.Milliseconds(), Method: r.Method, Path: r.URL.Path, Request: strconv.FormatUint(a.sum, 16), Repeat: a.repeat,
		Fault: string(f.fault), Coin: f.coin, Second: f.second, BeforeMS: f.before.Milliseconds(), AfterMS: f.after.Milliseconds(),
		RetryAfterMS: f.retryAfter.Milliseconds(), ReorderMS: f.reorder.Milliseconds(),
	}
}

// fate is the fate that an entry tells of.
func (e *Entry) fate() fate {
	return fate{
		fault: fault(e.Fault), coin: e.Coin, second: e.Second,
		before: time.Duration(e.BeforeMS) * time.Millisecond, after: time.Duration(e.AfterMS) * time.Millisecond,
		retryAfter: time.Duration(e.RetryAfterMS) * time.Millisecond, reorder: time.Duration(e.ReorderMS) * time.Millisecond,
	}
}

// Replay gives requests the fates of a log: the very request its own; another
// one the first that is left of its method and path; and none when there is
// none left.
type Replay struct {
	mu      sync.Mutex
	entries []Entry
	used    []bool
}

// maxLine bounds a line of a log, in bytes.
const maxLine = 1 << 20

// ReadReplay reads a log. It returns an error about the first line that is no
// entry, or names no fault.
func ReadReplay(r io.Reader) (*Replay, error) {
	out := &Replay{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d of the log: %w", n, err)
		}
		if !e.known() {
			return nil, fmt.Errorf("line %d of the log names no fault", n)
		}
		out.entries = append(out.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	if len(out.entries) == 0 {
		return nil, errors.New("the log is empty")
	}
	// Lines are in the order in which requests ended.
	slices.SortStableFunc(out.entries, func(a, b Entry) int { return cmp.Compare(a.N, b.N) })
	out.used = make([]bool, len(out.entries))
	return out, nil
}

func (e *Entry) known() bool {
	if fault(e.Fault) == none {
		return true
	}
	for _, s := range (Faults{}).shares() {
		if string(s.fault) == e.Fault {
			return true
		}
	}
	return false
}

// take returns the fate of a request and uses it up.
func (p *Replay) take(r *http.Request, a arrival) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum, like := strconv.FormatUint(a.sum, 16), -1
	for i := range p.entries {
		e := &p.entries[i]
		if p.used[i] || e.Method != r.Method || e.Path != r.URL.Path {
			continue
		}
		if e.Request == sum && e.Repeat == a.repeat {
			p.used[i] = true
			return e.fate()
		}
		if like < 0 {
			like = i
		}
	}
	if like < 0 {
		return fate{fault: none}
	}
	p.used[like] = true
	return p.entries[like].fate()
}
