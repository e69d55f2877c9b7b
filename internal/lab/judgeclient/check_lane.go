package judgeclient

import "time"

// heard is how long a client may take to hear of a failure: what was on its way
// then is not held against it.
const heard = 30 * time.Millisecond

// oneAtATime looks for requests that overlap between a failure and the next
// success.
func oneAtATime(f *findings) {
	for _, r := range f.records {
		batches := 0
		var first *Request
		for _, request := range r.Requests {
			if len(request.Items) == 0 {
				continue
			}
			if first == nil || request.Run == first.Run && !request.shares(first) {
				batches++
			}
			if first == nil {
				first = request
			}
			if open := r.open(request); open != nil && r.failing(request) {
				f.broken(r, "request %d began at %s while request %d was open (until %s), after a failure and before a success", request.N, seconds(request.Arrived), open.N, seconds(open.Ended))
			}
		}
		if batches > 1 && r.failedOnce() && !r.refusing() {
			f.kept("scenario %s: several batches waited, and went one after another", r.Scenario.Name)
		}
	}
	if len(f.good) == 0 {
		f.unclear("no two requests overlapped after a failure, but never did two batches wait at once: let the command send batches of at most LAB_BATCH")
	}
}

// open returns an earlier request of the same key and run that was not
// answered when a request came.
func (r *Record) open(request *Request) *Request {
	for _, earlier := range r.Requests {
		if earlier.N < request.N && earlier.Run == request.Run && earlier.Credential == request.Credential && len(earlier.Items) > 0 &&
			earlier.Arrived <= request.Arrived && earlier.Ended > request.Arrived {
			return earlier
		}
	}
	return nil
}

// failing reports whether, when a request came, the client had heard of a
// failure and not yet of a success after it.
func (r *Record) failing(request *Request) bool {
	var failure, success time.Duration = -1, -1
	for _, other := range r.Requests {
		if other.Run != request.Run || len(other.Items) == 0 || other.Ended > request.Arrived {
			continue
		}
		switch {
		case !other.failed():
			success = max(success, other.Ended)
		case other.Ended+heard <= request.Arrived:
			failure = max(failure, other.Ended)
		}
	}
	return failure > success
}

// refusing reports whether the scenario says no for good: then batches follow
// one another because each is done with.
func (r *Record) refusing() bool {
	return !r.Scenario.stages[0].then.success() && !r.Scenario.stages[0].then.Retryable
}

func (r *Record) failedOnce() bool {
	for _, request := range r.Requests {
		if len(request.Items) > 0 && request.failed() {
			return true
		}
	}
	return false
}
