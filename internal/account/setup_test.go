package account

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/fault"
)

// unused is a store that must not be asked.
type unused struct{ t *testing.T }

func (u unused) CreateSetup(context.Context, SetupRecord) (uint32, error) {
	u.t.Error("something was stored")
	return 0, nil
}

func (u unused) FindProject(context.Context, string, string) (Project, bool, error) {
	u.t.Error("a project was looked up")
	return Project{}, false, nil
}

func TestSetupRefuses(t *testing.T) {
	t.Parallel()
	s := NewService(Params{Store: unused{t}, Clock: time.Now, Random: rand.Reader})
	good := SetupParams{Organization: "o", Project: "p", Email: "a@b"}
	for name, c := range map[string]struct {
		change func(*SetupParams)
		field  string
	}{
		"no organization":  {func(p *SetupParams) { p.Organization = "" }, "organization"},
		"no project":       {func(p *SetupParams) { p.Project = "\t" }, "project"},
		"no email":         {func(p *SetupParams) { p.Email = "" }, "email"},
		"no @":             {func(p *SetupParams) { p.Email = "owner" }, "email"},
		"two @":            {func(p *SetupParams) { p.Email = "a@b@c" }, "email"},
		"no name":          {func(p *SetupParams) { p.Email = "@b" }, "email"},
		"no host":          {func(p *SetupParams) { p.Email = "a@" }, "email"},
		"space":            {func(p *SetupParams) { p.Email = "a b@c" }, "email"},
		"NUL":              {func(p *SetupParams) { p.Email = "a@b\x00" }, "email"},
		"not UTF-8":        {func(p *SetupParams) { p.Email = "a@\xff" }, "email"},
		"over 254 bytes":   {func(p *SetupParams) { p.Email = strings.Repeat("a", 253) + "@b" }, "email"},
		"control in names": {func(p *SetupParams) { p.Project = "a\x1bb" }, "project"},
	} {
		p := good
		c.change(&p)
		_, err := s.Setup(t.Context(), p)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Details["field"] != c.field {
			t.Errorf("%s: got %v, want a fault of %s", name, err, c.field)
		}
	}
}

// TestSetupNeedsAllItsRandomBytes: wherever the random source ends, nothing is
// stored.
func TestSetupNeedsAllItsRandomBytes(t *testing.T) {
	t.Parallel()
	for n := 0; n < 300; n += 23 {
		s := NewService(Params{Store: unused{t}, Clock: time.Now, Random: bytes.NewReader(make([]byte, n))})
		_, err := s.Setup(t.Context(), SetupParams{Organization: "o", Project: "p", Email: "a@b"})
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("with %d bytes: got %v", n, err)
		}
	}
}
