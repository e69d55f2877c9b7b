package faultproxy

import "time"

// hold keeps a request back until a later one has been delivered, at most as
// long as its fate says. It reports false if the client left meanwhile.
func (p *Proxy) hold(x *exchange) bool {
	overtaken := make(chan struct{})
	p.mu.Lock()
	p.held[overtaken] = x.arrival.n
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.held, overtaken)
		p.mu.Unlock()
	}()
	timer := time.NewTimer(x.fate.reorder)
	defer timer.Stop()
	select {
	case <-overtaken:
		x.entry.Overtaken = true
		return true
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
		return false
	}
}

// overtake lets go of all that came before a request and waited for a later
// one.
func (p *Proxy) overtake(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for overtaken, earlier := range p.held {
		if earlier < n {
			close(overtaken)
			delete(p.held, overtaken)
		}
	}
}
