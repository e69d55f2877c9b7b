package faultproxy

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"
)

// fault is what befalls a request.
type fault uint8

const (
	none fault = iota
	dropRequest
	dropAnswer
	truncate
	duplicate
	tooMany
	serverError
	unavailable
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
}

// draw decides the fate of a request from the seed, the request and how often
// it came before.
func (p *Proxy) draw(r *http.Request, body []byte) fate {
	h := fnv.New64a()
	for _, part := range [][]byte{[]byte(r.Method), []byte(r.URL.RequestURI()), body} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}
	sum := h.Sum64()
	p.mu.Lock()
	faults := p.faults
	repeat := p.seen[sum]
	p.seen[sum]++
	p.counts.Requests++
	p.mu.Unlock()
	return faults.draw(rand.New(rand.NewPCG(p.seed^repeat*0x9e3779b97f4a7c15, sum))) //nolint:gosec // what is drawn is to be repeatable
}

// draw always takes the same number of random values, so that one probability
// does not change what the others bring.
func (f Faults) draw(r *rand.Rand) fate {
	at, late, length := r.Float64(), r.Float64(), r.Float64()
	first, coin, second := r.Float64() < 0.5, r.Float64() < 0.5, r.Float64() < 0.5
	d := fate{fault: f.at(at), coin: coin, second: second, retryAfter: f.RetryAfter}
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

// at returns the fault whose share of the range 0 to 1 holds x.
func (f Faults) at(x float64) fault {
	for _, share := range []struct {
		fault fault
		p     float64
	}{
		{dropRequest, f.DropRequest},
		{dropAnswer, f.DropAnswer},
		{truncate, f.Truncate},
		{duplicate, f.Duplicate},
		{tooMany, f.TooMany},
		{serverError, f.ServerError},
		{unavailable, f.Unavailable},
	} {
		if x < share.p {
			return share.fault
		}
		x -= share.p
	}
	return none
}
