package replay

import "sync"

// turns has requests of one chunk wait for each other. Its zero value is ready.
type turns struct {
	mu sync.Mutex
	// taken is closed for each chunk when its turn ends.
	taken map[ChunkRef]chan struct{}
}

// take returns once nobody else has the turn of a chunk. The function that it
// returns ends the turn.
func (t *turns) take(ref ChunkRef) (end func()) {
	mine := make(chan struct{})
	for other := t.enter(ref, mine); other != nil; other = t.enter(ref, mine) {
		<-other
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.taken, ref)
		close(mine)
	}
}

// enter takes the turn, or returns what is closed when the one who has it ends.
func (t *turns) enter(ref ChunkRef, mine chan struct{}) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.taken[ref]; other != nil {
		return other
	}
	if t.taken == nil {
		t.taken = map[ChunkRef]chan struct{}{}
	}
	t.taken[ref] = mine
	return nil
}
