package execution

import (
	"crypto/sha256"

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
}

// told is an execution and the request that has made it.
type told struct {
	digest    [sha256.Size]byte
	execution Execution
}

func newEnded() ended { return ended{recent.New[idempotency.Ref, told](maxEnded)} }

// keep remembers an execution without what it was given, which nobody is told.
func (e ended) keep(ref idempotency.Ref, digest [sha256.Size]byte, x Execution) {
	const overhead = 700 // bytes, for what else there is of an execution
	x.Input, x.Context = nil, nil
	e.byKey.Put(ref, told{digest, x}, len(x.Output)+len(x.Key)+len(x.Customer)+overhead)
}

// find returns the execution that the same request has made, if it is
// remembered.
func (e ended) find(ref idempotency.Ref, digest [sha256.Size]byte) (Execution, bool) {
	one, ok := e.byKey.Find(ref)
	return one.execution, ok && one.digest == digest
}

// ForgetEnded forgets what is remembered of executions that have ended: the
// store may say less of them now.
func (s *Service) ForgetEnded() { s.ended.byKey.Clear() }
