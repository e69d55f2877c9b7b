package pgtest

import (
	"fmt"
	"sync"
	"testing"
)

// Template is a database that others are copied from. A copy takes a tenth of
// what making the tables takes.
type Template struct {
	fill func(url string) error
	once sync.Once
	name string
	err  error
}

// NewTemplate returns a template that is made when the first copy is asked for:
// fill gets the URL of an empty database and must have closed its connections
// when it returns. The package under test must call [Main].
func NewTemplate(fill func(url string) error) *Template { return &Template{fill: fill} }

// New is [New] with what the template holds. It fails the test when the
// template cannot be made.
func (p *Template) New(t testing.TB) string {
	t.Helper()
	connect(t)
	p.once.Do(func() { p.err = p.make() })
	if p.err != nil {
		t.Fatalf("make the database that others are copied from: %v", p.err)
	}
	return newCopy(t, p.name)
}

func (p *Template) make() (err error) {
	if p.name, err = create("template0"); err != nil {
		return err
	}
	shared.mu.Lock()
	shared.templates = append(shared.templates, p.name)
	shared.mu.Unlock()
	if err := p.fill(address(p.name)); err != nil {
		return fmt.Errorf("fill it: %w", err)
	}
	return nil
}
