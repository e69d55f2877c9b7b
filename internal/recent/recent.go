// Package recent remembers what was used lately, within a limit. It owns no
// truth: whatever it has forgotten is asked of who knows.
package recent

import "sync"

// Map remembers values by key. Its methods may be called from many goroutines.
type Map[K comparable, V any] struct {
	mu    sync.Mutex
	limit int
	// young has what was put or found since it was made, of a certain weight;
	// when it is full it becomes old, and what was old is forgotten.
	young, old map[K]item[V]
	weight     int
}

type item[V any] struct {
	value  V
	weight int
}

// New returns a Map that remembers values of at least half of a limit of
// weight, and of no more than it.
func New[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{limit: limit, young: map[K]item[V]{}}
}

// Find returns a value and whether it is remembered.
func (m *Map[K, V]) Find(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.young[key]; ok {
		return found.value, true
	}
	found, ok := m.old[key]
	if ok {
		m.put(key, found)
	}
	return found.value, ok
}

// Put remembers a value, which weighs something.
func (m *Map[K, V]) Put(key K, value V, weight int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, item[V]{value, weight})
}

// Clear forgets everything.
func (m *Map[K, V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.young, m.old, m.weight = map[K]item[V]{}, nil, 0
}

func (m *Map[K, V]) put(key K, one item[V]) {
	if one.weight > m.limit/2 {
		return
	}
	added := one.weight - m.young[key].weight
	if m.weight+added > m.limit/2 {
		m.old, m.young, m.weight, added = m.young, map[K]item[V]{}, 0, one.weight
	}
	m.weight += added
	m.young[key] = one
}
