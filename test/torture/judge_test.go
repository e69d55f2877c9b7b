package torture_test

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// delivered is told by the proxy of each request on its way to the server.
func (x *torture) delivered(r *http.Request) {
	if number, err := strconv.Atoi(r.Header.Get(batchHeader)); err == nil {
		x.model.deliver(number)
	}
}

// complete demands of a drained folder that verify is content and that what is
// stored is what was acknowledged, once each.
func (x *torture) complete(b program) {
	x.Helper()
	rows := x.read(b)
	if problems, _ := x.model.checkRows(rows, false); len(problems) > 0 {
		x.Fatalf("seed %d, %d events stored:\n%s", x.seed, len(rows), strings.Join(problems, "\n"))
	}
}

// probe sends one event and asks for it until it is there: an answer without
// it must not claim to hold everything acknowledged by then.
func (x *torture) probe() {
	x.Helper()
	it, members := x.probes.plain()
	it.event = "probe " + it.name
	members["event"] = it.event
	b := &batch{path: pathTrack, kind: it.kind, items: []*item{x.probes.finish(it, members)}}
	x.probes.encode(b)
	if _, err := x.direct.send(x.Context(), b, 10); err != nil {
		x.Fatalf("probe: %v", err)
	}
	acknowledged := time.Now()
	for time.Since(acknowledged) < patience {
		page, err := reader{"http://" + x.address, x.creds}.query(x.Context(), map[string]any{"type": "events", "event": it.event})
		if err != nil {
			x.Fatalf("probe: %v", err)
		}
		if len(page.Items) == 1 {
			return
		}
		if len(page.Items) > 0 || page.StoredThrough.After(acknowledged) {
			x.Fatalf("stored through %s, but an event acknowledged at %s is there %d times", page.StoredThrough, acknowledged, len(page.Items))
		}
	}
	x.Fatalf("an acknowledged event is not stored after %s", patience)
}

// read verifies a drained folder and returns all its events.
func (x *torture) read(b program) []row {
	x.Helper()
	verified := b.verify(x.Context(), x.T)
	if verified.Backlog != 0 {
		x.Fatalf("a drained folder has a backlog: %+v", verified)
	}
	server := b.serve(x.T, x.aside, nil)
	if !server.await(x.T) {
		x.Fatalf("the server did not start on a verified folder: %s", server.end(x.T))
	}
	began := time.Now()
	rows, err := reader{"http://" + x.aside, x.creds}.all(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	x.Logf("%d events read in %s", len(rows), time.Since(began).Round(time.Millisecond))
	if len(rows) != verified.Rows {
		x.Fatalf("verify counts %d events, %d were read", verified.Rows, len(rows))
	}
	server.drain(x.T)
	return rows
}

// repeatAll sends every acknowledged item that has an id once more: each must
// be a duplicate.
func (x *torture) repeatAll() {
	x.Helper()
	g := newMaker(x.model, x.seed, 0, 1)
	byKind := map[string][]*item{}
	for _, it := range x.model.acknowledged() {
		byKind[it.kind] = append(byKind[it.kind], it)
	}
	for kind, items := range byKind {
		for len(items) > 0 {
			n, size := 0, 0
			for n < len(items) && n < 1000 && size < maxBatchBytes {
				size += len(items[n].text)
				n++
			}
			b := &batch{path: pathTrack, kind: kind, items: items[:n]}
			g.encode(b)
			answer, err := x.direct.send(x.Context(), b, 1)
			if err != nil || answer.Duplicates != n {
				x.Fatalf("%d acknowledged items sent again: %+v, %v", n, answer, err)
			}
			items = items[n:]
		}
	}
}
