package judgeclient

import "strings"

// bufferChecks are about what becomes of events that could not be sent.
func bufferChecks() []Check {
	return []Check{
		{
			ID: "buffer-kept-after-giving-up", Title: "What could not be sent is kept, and sent by the next run", Profiles: buffered,
			Source: "delays: after the last attempt put the events into your buffer",
			How:    "the server fails until the client ends, which is started again; everything must come, under its id",
			judge:  func(f *findings) { bufferKept(f, "give-up") },
		},
		{
			ID: "buffer-kept-after-kill", Title: "What was not acknowledged survives kill -9", Profiles: buffered,
			Source: "client checklist: event_id is kept beside the fact",
			How:    "the client is killed while an attempt is under way, and started again; everything must come, under its id",
			judge:  func(f *findings) { bufferKept(f, "kill") },
		},
		{
			ID: "buffer-within-age", Title: "Nothing is sent from the buffer after 47 hours", Profiles: []Profile{Events},
			Source: "client checklist: what is sent from a buffer is sent within the window of 48 hours",
			How:    "needs --clock: the client is killed with unsent events and started with LAB_NOW 47 h 10 min later; none may come",
			judge:  withinAge,
		},
		{
			ID: "gives-up-aloud", Title: "Giving up is logged", Profiles: buffered,
			Source: "delays: after the last attempt keep the events and log the fact",
			How:    "the output of the command must differ from that of a run without failures; a log that goes elsewhere cannot be seen",
			judge:  aloud,
		},
	}
}

// played returns the record of a scenario, or nil, with the reason noted.
func (f *findings) played(name string) *Record {
	for _, r := range f.records {
		if r.Scenario.Name == name {
			return r
		}
	}
	for _, s := range Scenarios() {
		if s.Name != name {
			continue
		}
		if why := s.missing(f.params); why != "" {
			f.none("%s", why)
		}
	}
	f.none("the scenario %s was not played", name)
	return nil
}

func bufferKept(f *findings, scenario string) {
	r := f.played(scenario)
	if r == nil {
		return
	}
	facts, by := r.attempts()
	kept, renamed, gone := 0, 0, []string{}
	for _, fact := range facts {
		last, later := r.firstRun(by[fact])
		switch {
		case last == nil:
		case later == nil:
			gone = append(gone, last.item.Name)
		case later.item.ID == last.item.ID:
			kept++
		default:
			renamed++
		}
	}
	switch {
	case len(gone) > 0:
		f.broken(r, "%d of %d items that run 1 could not deliver never came from run 2: %s", len(gone), len(gone)+kept+renamed, short(strings.Join(gone, ", ")))
	case renamed > 0:
		f.unclear("%d items came again under another id: kept in a buffer, or tracked anew? With LAB_EVENTS=0 nothing new is to be tracked", renamed)
	case kept > 0:
		f.kept("all %d items that run 1 could not deliver came from run 2", kept)
	default:
		f.none("run 1 had nothing left over")
	}
}

// firstRun returns the last attempt of run 1, if it failed, and the first one
// after it.
func (r *Record) firstRun(attempts []attempt) (last, later *attempt) {
	for i := range attempts {
		a := &attempts[i]
		switch {
		case a.request.Run == 1 && a.request.failed():
			last = a
		case a.request.Run == 1:
			last = nil
		case later == nil:
			later = a
		}
	}
	return last, later
}

func withinAge(f *findings) {
	r := f.played("aged")
	if r == nil {
		return
	}
	before := 0
	for _, request := range r.Requests {
		switch {
		case request.Run == 1:
			before += len(request.Items)
		case len(request.Items) > 0:
			f.broken(r, "%s was sent although its clock was %v later", request.Items[0].Name, tooOld)
		}
	}
	kept := f.played("kill")
	switch {
	case before == 0:
		f.none("run 1 sent nothing")
	case kept == nil || !kept.delivers(2):
		f.unclear("nothing came after %v, but neither did anything come at once: see buffer-kept-after-kill", tooOld)
	default:
		f.kept("nothing came after %v, and without that time it does", tooOld)
	}
}

// delivers reports whether a run sent anything.
func (r *Record) delivers(run int) bool {
	for _, request := range r.Requests {
		if request.Run == run && len(request.Items) > 0 {
			return true
		}
	}
	return false
}

func aloud(f *findings) {
	gaveUp, quiet := f.played("give-up"), f.played("accepted")
	if gaveUp == nil || quiet == nil {
		return
	}
	exit := gaveUp.exit(1)
	known := map[string]bool{}
	for line := range strings.Lines(quiet.exit(1).Output) {
		known[line] = true
	}
	for line := range strings.Lines(exit.Output) {
		if !known[line] && strings.TrimSpace(line) != "" {
			f.kept("it printed: %s", short(strings.TrimSpace(line)))
			return
		}
	}
	f.unclear("the command printed nothing more than when all is well; if it logs elsewhere, look there")
}
