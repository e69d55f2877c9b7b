package judgeclient

import (
	"fmt"
	"slices"
	"strings"
)

// duties say what the command under test has to do, by profile.
var duties = map[Profile]string{
	Events: `Track LAB_EVENTS events, each with a name or a property of its own, send them to
$ACTIONPULSE_URL with the key $ACTIONPULSE_KEY, then close: flush, and exit. Keep
what is not sent in the folder $LAB_OUTBOX, and begin by sending what is there.
LAB_EVENTS is 0 when the lab starts the command again: then track nothing new. If
LAB_BATCH is not 0, send batches of at most so many events.`,
	Keyed: `Ask for two different units of work, one after the other, with bodies that differ:
for instance charge the customer "lab" 1 credit for order-1 and 2 credits for
order-2, with the project key $ACTIONPULSE_PROJECT_KEY. Derive each
Idempotency-Key from the unit, not from the process: when the lab starts the
command again, it does the same two units again, as after a crash. Exit with 0 if
both have succeeded.`,
	Mutation: `Make one change that has no key, with the access token $ACTIONPULSE_ACCESS_TOKEN:
for instance one release marker by hand. Read whatever you like.`,
	Deploy: `Make the deploy marker of this CI run, in the project $ACTIONPULSE_PROJECT_ID with
the token $ACTIONPULSE_CI_TOKEN. The environment is that of a CI system (--ci); the
lab runs the command again as a re-run of the same deploy, and once as the next
deploy. Exit with 0 if the marker is there.`,
	Session: `Make one call of the application API with the access token
$ACTIONPULSE_ACCESS_TOKEN, for instance list the projects. When it has expired,
refresh it with $ACTIONPULSE_REFRESH_TOKEN.`,
	Replay: `Send three chunks of one recording, each with its own events, to $ACTIONPULSE_URL
with the key $ACTIONPULSE_KEY, then exit. Keep what is not sent in $LAB_OUTBOX, and
when the lab starts the command again, send what is left. Exit with 0 if all is
sent, a duplicate included.`,
}

// Explain says what the command under test has to do in a profile.
func Explain(p Profile) string { return duties[p] }

// List writes the scenarios and the rules of a profile for a person.
func List(p *Params) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Profile %s. What the command has to do:\n\n%s\n\nScenarios:\n\n", p.Profile, indented(Explain(p.Profile)))
	for _, s := range Scenarios() {
		if !slices.Contains(s.Profiles, p.Profile) {
			continue
		}
		fmt.Fprintf(&b, "  %-22s %s", s.Name, s.About)
		if missing := s.missing(p); missing != "" {
			fmt.Fprintf(&b, " Not played: %s.", missing)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\nRules:\n\n")
	for _, c := range ChecksOf(p.Profile) {
		fmt.Fprintf(&b, "  %-28s %s.\n  %-28s %s.\n", c.ID, c.Title, "", c.How)
	}
	return b.String()
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
