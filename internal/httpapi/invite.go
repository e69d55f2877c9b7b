package httpapi

import (
	"bytes"
	_ "embed" // the page, its style and its script
	"html/template"
)

// invitePath is the page that an invitation's link leads to. The token is
// behind a #, which browsers send to nobody, so that no log has it.
const invitePath = "/invite"

var (
	//go:embed invite.html
	inviteHTML string
	//go:embed invite.css
	inviteCSS string
	//go:embed invite.js
	inviteJS string
)

// invitePolicy lets the page run its own script and ask this server.
var invitePolicy = []string{
	"default-src 'none'; style-src 'sha256-" + hashOf(inviteCSS) + "'; script-src 'sha256-" + hashOf(inviteJS) +
		"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

// renderInvite makes the page.
func renderInvite() ([]byte, error) {
	t, err := template.New("invite").Parse(inviteHTML)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		Style  template.CSS
		Script template.JS
	}{template.CSS(inviteCSS), template.JS(inviteJS)}) //nolint:gosec // files of ours
	return out.Bytes(), err
}

var invitePageOperation = operation{
	id: "invitePage", tag: tagAuth, summary: "The page of an invitation's link",
	description: "It asks for a password and accepts the invitation whose token follows the #.",
	replies:     docsOperation.replies,
}

// invitePage answers with the page. It is the same for every invitation.
func (s *service) invitePage(x *exchange) (answer, error) {
	setPagePolicy(x, invitePolicy)
	return s.documents.invite.answer(x), nil
}
