package template

import "sync/atomic"

// Scope is what expressions see: input, context, steps, and names that blocks
// add, such as item and index. It may be read by many at a time, but not while
// something is added to it.
type Scope struct {
	parent *Scope
	names  map[string]any
	steps  map[string]map[string]any
	// budget is what evaluations may still cost, shared with all scopes within.
	budget *atomic.Int64
}

// NewScope returns a scope without steps. The values are as [Decode] reads them.
func NewScope(input, context any) *Scope {
	s := &Scope{
		names:  map[string]any{nameInput: input, nameContext: context},
		steps:  map[string]map[string]any{},
		budget: new(atomic.Int64),
	}
	s.budget.Store(maxBudget)
	return s
}

// Inner returns a scope that sees what s sees, and to which steps and names can
// be added without s seeing them.
func (s *Scope) Inner() *Scope {
	return &Scope{parent: s, names: map[string]any{}, steps: map[string]map[string]any{}, budget: s.budget}
}

// Name adds a name. Expressions can only use item and index.
func (s *Scope) Name(name string, value any) { s.names[name] = value }

// SetStep adds the value of a step: steps.<id>. A nil map is null.
func (s *Scope) SetStep(id string, value map[string]any) { s.steps[id] = value }

// find returns what a name stands for; nil if nobody has added it.
func (s *Scope) find(name string) any {
	for ; s != nil; s = s.parent {
		if value, ok := s.names[name]; ok {
			return value
		}
	}
	return nil
}

// step returns the value of a step; nil if it has none.
func (s *Scope) step(id string) any {
	for ; s != nil; s = s.parent {
		value, ok := s.steps[id]
		if ok && value == nil {
			return nil
		}
		if ok {
			return value
		}
	}
	return nil
}
