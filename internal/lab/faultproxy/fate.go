package faultproxy

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"
)

// fault is what befalls a request, as logs name it.
type fault string

const (
	none        fault = "pass"
	dropRequest fault = "drop-request"
	dropAnswer  fault = "drop-answer"
	truncate    fault = "truncate"
	duplicate   fault = "duplicate"
	tooMany     fault = "429"
	serverError fault = "500"
	unavailable fault = "503"
	cutWithin   fault = "reset"
	reorder     fault = "reorder"
)

// fate is all that was drawn for one request.
type fate struct {
	fault fault
	// coin decides between the two variants of a fault: whether the server is
	// asked before an error is made up, whether doubled requests run at once.
	coin bool
	// second says which answer of a doubled request is returned.
	second bool
	// before and after are delays around the server's work.
	before, after time.Duration
	retryAfter    time.Duration
	// reorder is the longest that the request waits for a later one.
	reorder time.Duration
}

// arrival is one request as it came: its place in the order of arrival, its
// hash, and how often that very request came before.
type arrival struct {
	n, sum, repeat uint64
	at             time.Duration
}

// draw decides the fate of a request from the seed, the request and how often
// it came before; or as a log has it.
func (p *Proxy) draw(r *http.Request, body []byte) (arrival, fate) {
	sum := sumOf(r, body)
	p.mu.Lock()
	faults := p.faults
	p.arrived++
	a := arrival{n: p.arrived, sum: sum, repeat: p.seen[sum], at: time.Since(p.started)}
	p.seen[sum]++
	p.counts.Requests++
	p.mu.Unlock()
	switch {
	case p.options.Match != nil && !p.options.Match(r):
		return a, fate{fault: none}
	case p.options.Replay != nil:
		return a, p.options.Replay.take(r, a)
	default:
		return a, faults.draw(rand.New(rand.NewPCG(p.options.Seed^a.repeat*0x9e3779b97f4a7c15, sum))) //nolint:gosec // what is drawn is to be repeatable
	}
}

// sumOf is a hash of the method, the path and the body.
func sumOf(r *http.Request, body []byte) uint64 {
	h := fnv.New64a()
	for _, part := range [][]byte{[]byte(r.Method), []byte(r.URL.RequestURI()), body} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum64()
}

// draw always takes the same number of random values, so that one probability
// does not change what the others bring.
func (f Faults) draw(r *rand.Rand) fate {
	at, late, length := r.Float64(), r.Float64(), r.Float64()
	first, coin, second := r.Float64() < 0.5, r.Float64() < 0.5, r.Float64() < 0.5
	d := fate{fault: f.at(at), coin: coin, second: second, retryAfter: f.RetryAfter, reorder: f.MaxReorder}
	if d.reorder <= 0 {
		d.reorder = DefaultMaxReorder
	}
	if late < f.Delay {
		wait := time.Duration(length * float64(f.MaxDelay))
		if first {
			d.before = wait
		} else {
			d.after = wait
		}
	}
	return d
}

// share is a fault and its probability.
type share struct {
	fault fault
	p     float64
}

// shares are the faults in the order in which they divide the range 0 to 1.
func (f Faults) shares() []share {
	return []share{
		{dropRequest, f.DropRequest},
		{dropAnswer, f.DropAnswer},
		{truncate, f.Truncate},
		{duplicate, f.Duplicate},
		{tooMany, f.TooMany},
		{serverError, f.ServerError},
		{unavailable, f.Unavailable},
		{cutWithin, f.Reset},
		{reorder, f.Reorder},
	}
}

// at returns the fault whose share of the range 0 to 1 holds x.
func (f Faults) at(x float64) fault {
	for _, share := range f.shares() {
		if x < share.p {
			return share.fault
		}
		x -= share.p
	}
	return none
}
