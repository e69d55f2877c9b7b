package judgeclient

// sameKeyAgain compares the keys of work that was asked for by two processes.
func sameKeyAgain(f *findings) {
	for _, r := range f.records {
		facts, by := r.attempts()
		for _, fact := range facts {
			first := by[fact][0]
			for _, later := range by[fact][1:] {
				if later.request.Run == first.request.Run || r.Scenario.stages[later.request.Run-1].nextDeploy {
					continue
				}
				if first.item.ID != later.item.ID {
					f.broken(r, "%s: run %d used the key %q, run %d the key %q", first.item.Name, first.request.Run, short(first.item.ID), later.request.Run, short(later.item.ID))
					break
				}
				f.kept("scenario %s: run %d used the key of run 1", r.Scenario.Name, later.request.Run)
			}
		}
	}
	f.none("no unit of work was asked for by two runs")
}

// otherKeys looks for a key that names two units of work.
func otherKeys(f *findings) {
	units := f.units()
	for _, r := range f.records {
		named := map[string]attempt{}
		for _, request := range r.Requests {
			for i := range request.Items {
				now := attempt{request, &request.Items[i]}
				before, ok := named[now.item.ID]
				if !ok || before.request.failed() {
					named[now.item.ID] = now
				}
				if !ok || now.item.ID == "" {
					continue
				}
				f.sameKey(r, before, now, units)
			}
		}
		f.deploys(r)
		if f.params.Profile == Keyed && len(named) > 1 {
			f.kept("scenario %s: %d keys, each for one unit of work", r.Scenario.Name, len(named))
		}
	}
	f.none("only one unit of work was ever asked for")
}

// units are the facts of the scenario in which nothing goes wrong: what the
// client means to do.
func (f *findings) units() map[string]bool {
	out := map[string]bool{}
	for _, r := range f.records {
		if r.Scenario.Name != "accepted" {
			continue
		}
		for _, request := range r.Requests {
			for i := range request.Items {
				out[request.Items[i].Fact] = true
			}
		}
	}
	return out
}

// sameKey judges two requests with one key: it must be the same work.
func (f *findings) sameKey(r *Record, before, now attempt, units map[string]bool) {
	if f.params.Profile != Keyed || before.item.Fact == now.item.Fact {
		return
	}
	if !before.request.failed() || units[before.item.Fact] && units[now.item.Fact] {
		f.broken(r, "the key %q named one unit of work in request %d and another in request %d", short(now.item.ID), before.request.N, now.request.N)
	}
}

// deploys compares the keys of two deploys.
func (f *findings) deploys(r *Record) {
	if r.Scenario.Name != "deploy-next" {
		return
	}
	first := map[string]*Request{}
	later := false
	for _, request := range r.Requests {
		for i := range request.Items {
			key := request.Items[i].ID
			if request.Run == 1 {
				first[key] = request
				continue
			}
			later = true
			if before := first[key]; before != nil {
				f.broken(r, "both deploys have the key %q (requests %d and %d)", short(key), before.N, request.N)
			}
		}
	}
	if later && len(first) > 0 {
		f.kept("the next deploy was given another key")
	}
}

// stableBodies compares the bodies that were sent with one key.
func stableBodies(f *findings) {
	units := f.units()
	for _, r := range f.records {
		last := map[string]attempt{}
		n := 0
		for _, request := range r.Requests {
			for i := range request.Items {
				now := attempt{request, &request.Items[i]}
				before, ok := last[now.item.ID]
				last[now.item.ID] = now
				if !ok || now.item.ID == "" || !before.request.failed() {
					continue
				}
				reused := units[before.item.Fact] && units[now.item.Fact] && before.item.Fact != now.item.Fact
				switch {
				case reused: // the key names two units, which is said elsewhere
				case f.params.sameBody(before, now):
					n++
				default:
					f.broken(r, "the key %q was sent again with another body (%v, then %v)", short(now.item.ID), before.request, request)
				}
			}
		}
		if n > 0 {
			f.kept("scenario %s: %d repeats with the body of before", r.Scenario.Name, n)
		}
	}
	f.none("nothing that had failed came again with its key")
}

// sameBody compares bodies as the server does: bytes, or members for a marker.
// The time of a marker has a rule of its own.
func (p *Params) sameBody(a, b attempt) bool {
	if p.Profile == Deploy {
		return a.item.Fact == b.item.Fact
	}
	return a.request.Body == b.request.Body
}

func numberedOnce(f *findings) {
	for _, r := range f.records {
		facts := map[string]attempt{}
		for _, request := range r.Requests {
			for i := range request.Items {
				now := attempt{request, &request.Items[i]}
				before, ok := facts[now.item.ID]
				if ok && before.item.Fact != now.item.Fact {
					f.broken(r, "%s came with other events in request %d than in request %d", now.item.Name, request.N, before.request.N)
				}
				facts[now.item.ID] = now
			}
		}
		if len(facts) > 1 {
			f.kept("scenario %s: %d chunks, each with a number of its own", r.Scenario.Name, len(facts))
		}
	}
	f.none("only one chunk ever came")
}

// stableTimes compares the times of facts that came again.
func stableTimes(f *findings) {
	for _, r := range f.records {
		facts, by := r.attempts()
		n, without := 0, 0
		for _, fact := range facts {
			for i := 1; i < len(by[fact]); i++ {
				before, after := by[fact][i-1], by[fact][i]
				if !f.again(r, before, after) {
					continue
				}
				switch {
				case before.item.TS == "" && after.item.TS == "":
					without++
				case sameTime(before.item.TS, after.item.TS):
					n++
				default:
					f.broken(r, "%s had the time %s in %v and %s in %v", before.item.Name, short(before.item.TS), before.request, short(after.item.TS), after.request)
				}
			}
		}
		f.times(r, n, without)
	}
	f.none("nothing that had failed came again")
}

// again reports whether the second attempt repeats the first: after a failure,
// or as a CI step that is run again.
func (f *findings) again(r *Record, before, after attempt) bool {
	if before.request.failed() {
		return true
	}
	return f.params.Profile == Deploy && !r.Scenario.stages[after.request.Run-1].nextDeploy
}

func (f *findings) times(r *Record, n, without int) {
	if n > 0 {
		f.kept("scenario %s: %d repeats with the time of before", r.Scenario.Name, n)
	}
	switch {
	case without == 0:
	case f.params.Profile == Deploy:
		f.kept("scenario %s: no time is sent, which is the same on every attempt", r.Scenario.Name)
	default:
		f.unclear("no time is sent: the server takes the time of receipt, which is another on each attempt")
	}
}

// sameTime compares two times as instants.
func sameTime(a, b string) bool {
	if a == b {
		return true
	}
	at, ok := instant(a)
	bt, okToo := instant(b)
	return ok && okToo && at.Equal(bt)
}

// sameKind looks at the credentials of events that came again.
func sameKind(f *findings) {
	changed := false
	for _, r := range f.records {
		kinds := map[string]attempt{}
		n := 0
		for _, request := range r.Requests {
			for i := range request.Items {
				now := attempt{request, &request.Items[i]}
				before, ok := kinds[now.item.Fact]
				if !ok {
					kinds[now.item.Fact] = now
					continue
				}
				if before.request.Credential != request.Credential {
					f.broken(r, "%s was first sent with the %s, and with the %s in %v", now.item.Name, before.request.Credential, request.Credential, request)
					continue
				}
				n++
				changed = changed || request.Run == 3
			}
		}
		if n > 0 && r.Scenario.Name == "other-key" {
			f.kept("unsent events waited while the client had a key of another kind, and left with their own")
		}
	}
	if len(f.good) == 0 && !changed {
		f.unclear("no event was sent with a key of another kind; whether unsent ones are kept for theirs was not seen")
	}
}
