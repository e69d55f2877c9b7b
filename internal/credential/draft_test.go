package credential

import (
	"crypto/rand"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/actionpulse/actionpulse/internal/fault"
)

func TestNewDraftRefuses(t *testing.T) {
	t.Parallel()
	server := CreateParams{Kind: Server, Name: "n", OrganizationID: "o", ProjectID: "p"}
	access := CreateParams{Kind: Access, Name: "n", OrganizationID: "o", UserID: "u", Lifetime: time.Hour}
	for name, c := range map[string]struct {
		base   CreateParams
		change func(*CreateParams)
		field  string // empty: accepted
	}{
		"server":                   {server, func(*CreateParams) {}, ""},
		"access":                   {access, func(*CreateParams) {}, ""},
		"no rate limit":            {server, func(p *CreateParams) { p.Rate = new(0.0) }, ""},
		"200 characters":           {server, func(p *CreateParams) { p.Name = strings.Repeat("я", 200) }, ""},
		"unknown kind":             {server, func(p *CreateParams) { p.Kind = "root" }, "kind"},
		"no name":                  {server, func(p *CreateParams) { p.Name = "" }, "name"},
		"blank name":               {server, func(p *CreateParams) { p.Name = " \u00a0" }, "name"},
		"201 characters":           {server, func(p *CreateParams) { p.Name = strings.Repeat("я", 201) }, "name"},
		"control character":        {server, func(p *CreateParams) { p.Name = "a\x00b" }, "name"},
		"not UTF-8":                {server, func(p *CreateParams) { p.Name = "a\xff" }, "name"},
		"no project":               {server, func(p *CreateParams) { p.ProjectID = "" }, "project_id"},
		"server with a user":       {server, func(p *CreateParams) { p.UserID = "u" }, "user_id"},
		"server with origins":      {server, func(p *CreateParams) { p.Origins = []string{"https://a"} }, "origins"},
		"negative lifetime":        {server, func(p *CreateParams) { p.Lifetime = -1 }, "lifetime"},
		"negative rate":            {server, func(p *CreateParams) { p.Rate = new(-1.0) }, "rate"},
		"rate that is no number":   {server, func(p *CreateParams) { p.Rate = new(math.NaN()) }, "rate"},
		"endless rate":             {server, func(p *CreateParams) { p.Rate = new(math.Inf(1)) }, "rate"},
		"burst of none":            {server, func(p *CreateParams) { p.Burst = new(0) }, "burst"},
		"access without a user":    {access, func(p *CreateParams) { p.UserID = "" }, "user_id"},
		"access with a project":    {access, func(p *CreateParams) { p.ProjectID = "p" }, "project_id"},
		"access without an end":    {access, func(p *CreateParams) { p.Lifetime = 0 }, "lifetime"},
		"access with a rate":       {access, func(p *CreateParams) { p.Rate = new(1.0) }, "rate"},
		"browser with bad origins": {server, func(p *CreateParams) { p.Kind, p.Origins = Browser, []string{"a"} }, "origins"},
	} {
		p := c.base
		c.change(&p)
		_, secret, err := NewDraft(p, time.UnixMilli(0), rand.Reader)
		f, ok := errors.AsType[*fault.Error](err)
		if c.field == "" && err != nil || c.field != "" && (!ok || f.Details["field"] != c.field || secret != "") {
			t.Errorf("%s: got %v, want a fault of %q", name, err, c.field)
		}
	}
}

func TestParseOrigins(t *testing.T) {
	t.Parallel()
	got, err := parseOrigins([]string{
		"https://Shop.Example", "https://shop.example:443/", "http://shop.example:80", "http://shop.example:443",
		"http://localhost:5173", "https://[::1]:8443", "capacitor://localhost", "HTTPS://xn--e1afmkfd.xn--p1ai",
	})
	want := []string{
		"https://shop.example", "http://shop.example", "http://shop.example:443",
		"http://localhost:5173", "https://[::1]:8443", "capacitor://localhost", "https://xn--e1afmkfd.xn--p1ai",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, bad := range []string{
		"", "*", "null", "shop.example", "https://", "https:shop.example", "//shop.example", "https://a/b", "https://a?b",
		"https://a?", "https://a#", "https://u:p@a", "https://a b", "https://пример.рф", "https://*.a", "https://a:x",
		"https://" + strings.Repeat("a", 300),
	} {
		if got, err := parseOrigins([]string{bad}); err == nil {
			t.Errorf("%q is taken as %q", bad, got)
		}
	}
	if _, err := parseOrigins(make([]string, originsLimit+1)); err == nil {
		t.Error("too many origins are taken")
	}
}
