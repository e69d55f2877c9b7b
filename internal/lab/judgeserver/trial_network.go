package judgeserver

import (
	"context"
	"net/url"

	"github.com/actionpulse/actionpulse/internal/lab/faultproxy"
)

// rounds is how often a fault of the network is tried.
const rounds = 3

// broken runs a trial in several units of work behind a network with a fault.
func (j *judge) broken(ctx context.Context, faults faultproxy.Faults, try func(unit, request) finding) finding {
	address, err := url.Parse(j.endpoint.URL("x"))
	if err != nil {
		return inconclusive("%v", err)
	}
	proxy, err := faultproxy.Start(faultproxy.Options{Seed: j.options.Seed, Faults: faults, Upstream: origin(address)})
	if err != nil {
		return inconclusive("%v", err)
	}
	defer proxy.Close() //nolint:errcheck // the trial is over
	var f finding
	for round := range rounds {
		one := j.within(ctx, func(u unit) finding {
			r := j.request(u)
			r.through = proxy.URL()
			return try(u, r)
		})
		if round == 0 {
			f = one
			continue
		}
		f = f.and(one)
	}
	return f
}

// origin is an address without its path.
func origin(address *url.URL) string {
	u := url.URL{Scheme: address.Scheme, Host: address.Host}
	return u.String()
}

// unanswered sees that a fault has kept the answer from the client.
func unanswered(u unit, a answer) finding {
	if a.err == nil {
		return inconclusive("%s: there was an answer in spite of the fault: %s", u.name, a.short())
	}
	return pass("%s: the answer was lost", u.name)
}

func (j *judge) lostAnswer(ctx context.Context) finding {
	try := func(u unit, r request) finding {
		f := unanswered(u, j.client.send(ctx, r))
		repeat := j.settle(ctx, j.request(u))
		return f.and(succeeds(u, "the repeat", repeat), j.one(ctx, u, repeat, j.send(ctx, u)))
	}
	return j.broken(ctx, faultproxy.Faults{DropAnswer: 1}, try).and(j.broken(ctx, faultproxy.Faults{Truncate: 1}, try))
}

func (j *judge) lostRequest(ctx context.Context) finding {
	return j.broken(ctx, faultproxy.Faults{DropRequest: 1}, func(u unit, r request) finding {
		f := unanswered(u, j.client.send(ctx, r))
		repeat := j.settle(ctx, j.request(u))
		return f.and(succeeds(u, "the repeat", repeat), j.one(ctx, u, repeat, j.send(ctx, u)))
	})
}

func (j *judge) doubled(ctx context.Context) finding {
	return j.broken(ctx, faultproxy.Faults{Duplicate: 1}, func(u unit, r request) finding {
		first := j.client.send(ctx, r)
		if !first.succeeded() && !first.running() {
			return fail("%s: delivered twice: %s", u.name, first.short())
		}
		repeat := j.settle(ctx, j.request(u))
		return pass("%s: delivered twice: %d", u.name, first.status).and(
			succeeds(u, "the repeat", repeat), j.one(ctx, u, first, repeat))
	})
}

func (j *judge) cutRequest(ctx context.Context) finding {
	if len(j.endpoint.Body("x")) < 2 {
		return notTested("the request has no body that could be cut")
	}
	return j.within(ctx, func(u unit) finding {
		half, err := j.client.cut(ctx, j.request(u))
		if err != nil {
			return inconclusive("%s: half a request could not be sent: %v", u.name, err)
		}
		if half.succeeded() {
			return fail("%s: half a body: %s", u.name, half.short())
		}
		repeat := j.settle(ctx, j.request(u))
		return succeeds(u, "the whole request", repeat).and(j.one(ctx, u, repeat, j.send(ctx, u)))
	})
}
