package execution

import "sync"

// Event is something that has happened to an execution that is being watched.
type Event struct {
	// Type is "execution", "step" or "delta".
	Type string
	// Execution is set for the first, as it is now.
	Execution *Execution
	// Step is set for the second.
	Step *Step
	// Place and Delta are set for the third: a part of what a step gives out.
	Place Place
	Delta string
}

// eventBuffer is how many events a watcher may be behind. One that is further
// behind misses some; how an execution has ended is never missed.
const eventBuffer = 256

// hub tells those who watch executions what happens to those that run in this
// process. Telling never waits.
type hub struct {
	mu      sync.Mutex
	watches map[string]map[*watch]struct{}
}

// watch is somebody who watches an execution.
type watch struct {
	hub *hub
	id  string
	// ended has the execution once it has ended, or does not run here any more.
	ended chan Execution
	// events are what happens before that.
	events chan Event
}

func newHub() *hub { return &hub{watches: map[string]map[*watch]struct{}{}} }

// watch begins to watch; it must be stopped.
func (h *hub) watch(id string) *watch {
	w := &watch{hub: h, id: id, ended: make(chan Execution, 1), events: make(chan Event, eventBuffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches[id] == nil {
		h.watches[id] = map[*watch]struct{}{}
	}
	h.watches[id][w] = struct{}{}
	return w
}

func (w *watch) stop() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.hub.watches[w.id], w)
	if len(w.hub.watches[w.id]) == 0 {
		delete(w.hub.watches, w.id)
	}
}

// tell tells of an event.
func (h *hub) tell(id string, e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches[id] {
		select {
		case w.events <- e:
		default:
		}
	}
}

// end tells that an execution has ended, or was given back to the queue.
func (h *hub) end(x *Execution) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches[x.ID] {
		select {
		case w.ended <- *x:
		default: // it has ended before
		}
	}
}
