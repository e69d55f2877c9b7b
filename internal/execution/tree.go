package execution

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow/step"
)

// Node is a run of a step in a trace, with the calls it has made and the steps
// within it.
type Node struct {
	Step  *Step
	Calls []*Call
	Inner []Node
}

// Roots returns the steps of the flow that have begun, each with what is within
// it. A step that has steps within it and has not ended is not in the journal:
// it is shown as begun when the first of those has.
func (t *Trace) Roots() []Node {
	if t.block == nil {
		return nil
	}
	b := branches{steps: map[Place]*Step{}, calls: map[Place][]*Call{}, iterations: map[string][]string{}}
	for i := range t.Steps {
		s := &t.Steps[i]
		b.steps[s.Place] = s
		b.iterations[s.Step] = append(b.iterations[s.Step], s.Iteration)
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		b.calls[c.Place] = append(b.calls[c.Place], c)
	}
	return b.block(t.block, "")
}

// branches grows a tree.
type branches struct {
	steps      map[Place]*Step
	calls      map[Place][]*Call
	iterations map[string][]string
}

// block returns the nodes of a block in one iteration.
func (b *branches) block(block *step.Block, iteration string) []Node {
	var nodes []Node
	for _, s := range block.Steps {
		at := Place{Step: s.ID, Iteration: iteration}
		n := Node{Step: b.steps[at], Calls: b.calls[at]}
		for _, inner := range s.Inner {
			if s.Type != iterates {
				n.Inner = append(n.Inner, b.block(inner, iteration)...)
				continue
			}
			for _, within := range b.within(inner, iteration) {
				n.Inner = append(n.Inner, b.block(inner, within)...)
			}
		}
		if n.Step == nil && len(n.Inner) > 0 {
			n.Step = &Step{Place: at, Type: s.Type, State: StepStarted, Attempt: 1, StartedAt: n.Inner[0].Step.StartedAt}
		}
		if n.Step != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// iterates is the type of steps whose block runs in iterations of its own; the
// blocks of others run in those of their step.
const iterates = "parallel"

// within are the iterations one level below outer in which a block has begun.
func (b *branches) within(block *step.Block, outer string) []string {
	found := map[string]bool{}
	for _, s := range flat(block) {
		for _, iteration := range b.iterations[s.ID] {
			if at, ok := level(iteration, outer); ok {
				found[at] = true
			}
		}
	}
	list := make([]string, 0, len(found))
	for iteration := range found {
		list = append(list, iteration)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(lastNumber(a), lastNumber(b)), cmp.Compare(a, b)) })
	return list
}

// flat are the steps of a block and of those within it.
func flat(block *step.Block) []*step.Step {
	list := slices.Clone(block.Steps)
	for _, s := range block.Steps {
		for _, inner := range s.Inner {
			list = append(list, flat(inner)...)
		}
	}
	return list
}

// level cuts an iteration to the one that is one level below outer.
func level(iteration, outer string) (string, bool) {
	if outer != "" {
		outer += "."
	}
	rest, ok := strings.CutPrefix(iteration, outer)
	first, _, _ := strings.Cut(rest, ".")
	return outer + first, ok && first != ""
}

func lastNumber(iteration string) int {
	n, err := strconv.Atoi(iteration[strings.LastIndexByte(iteration, '.')+1:])
	if err != nil {
		return -1
	}
	return n
}
