package execution

import (
	"crypto/sha256"
	"sync/atomic"

	"github.com/actionpulse/actionpulse/idempotency"
	"github.com/actionpulse/actionpulse/internal/recent"
)

// maxEnded is how many bytes of executions are remembered at most, about.
const maxEnded = 16 << 20

// ended are executions that have ended, as they were told of lately: so that a
// repeat that follows soon is answered without the store. Neither an execution
// that has ended nor what its key names ever changes, but for what is erased
// of a person: then all are forgotten. They are given to the
// same bytes only: what anything else means, the store says.
type ended struct {
	byKey *recent.Map[idempotency.Ref, told]
	// forgotten counts how often all were forgotten: what was read before the
	// last time may be what was erased since.
	forgotten *atomic.Int64
}

// told is an execution and the request that has made it.
type told struct {
	digest    [sha256.Size]byte
	execution Execution
}

func newEnded() ended { return ended{recent.New[idempotency.Ref, told](maxEnded), new(atomic.Int64)} }

// keep remembers an execution without what it was given, which nobody is told,
// unless all were forgotten since before it was read: seen is what forgotten was
// then.
func (e ended) keep(ref idempotency.Ref, t told, seen int64) {
	const overhead = 700 // bytes, for what else there is of an execution
	x := &t.execution
	x.Input, x.Context = nil, nil
	e.byKey.Put(ref, t, len(x.Output)+len(x.Key)+len(x.Customer)+overhead)
	if e.forgotten.Load() != seen { // after it was put: whoever forgets counts first
		e.byKey.Clear()
	}
}

// forget forgets all, and what is being read now.
func (e ended) forget() {
	e.forgotten.Add(1)
	e.byKey.Clear()
}

// find returns the execution that the same request has made, if it is
// remembered.
func (e ended) find(ref idempotency.Ref, digest [sha256.Size]byte) (Execution, bool) {
	one, ok := e.byKey.Find(ref)
	return one.execution, ok && one.digest == digest
}

// ForgetEnded forgets what is remembered of executions that have ended: the
// store may say less of them now.
func (s *Service) ForgetEnded() { s.ended.forget() }
