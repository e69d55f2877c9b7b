// Package actionpulsetest is a server for the tests of programs that call
// ActionPulse: over real HTTP, with its state in memory, and started in
// microseconds. It keeps the promises of the real server about repeats, keys and
// refusals, so that a test can lose an answer ([LoseAnswer]) and then count what
// was done.
//
//	server := actionpulsetest.NewServer(t)
//	server.Script(actionpulsetest.LoseAnswer().On("POST /v1/customers/{external_user_id}/charge"))
//	… run the code under test against server.URL and server.ProjectKey …
//	if n := len(server.Movements("shop-1")); n != 1 { … }
//
// # What it owns
//
// The rules of intake (checks of items in their order, ids, the window of 48
// hours), of Idempotency-Keys (one suite of tests runs against it and against the
// real server, and compares the answers member by member), of credits (balances,
// holds, reversals), of executions and their keys, of deploy markers, and of
// logging in and refreshing. A clock that can be set ([Server.Advance]) lets
// windows, tokens and holds end without waiting.
//
// # What it leaves out
//
//   - Paths that are not listed in route.go, among them queries, replays,
//     webhooks, organizations, projects and keys, models, traces, following an
//     execution, costs, exports, and pins, versions, comparisons and archives of
//     flows. They get 404 not_found, as on a server that does not have
//     them, and fail the test, unless [AllowUnknownPaths] says otherwise: a test
//     that believes in an answer nobody gave is worse than none.
//   - Flows are not run: [Server.SetFlow] says what comes of one. A definition is
//     checked for its form only (members, steps with id and type, amounts of the
//     price), and its input schema is not applied: [Server.SetInputCheck] is. The
//     hold is what its price says of a run, of the steps at the top, once each, and
//     of the budget for tokens. The charge is what the function says, else the
//     price of a run, and never more than the hold. Usage of tokens is 0, and
//     operations are the requests without model calls. A timeout does not end a run,
//     and what is cancelled ends at once.
//   - What depends on load: rate limits, quotas, timeouts, 500 and 503 come only from
//     [Server.Script]. Nor are organizations suspended, or keys revoked.
//   - zstd and YAML: 415 unsupported_media_type.
//   - Texts: messages are like those of the real server, not equal. Clients must
//     not read them, and neither should tests.
//   - Ids sort by the real clock, not by the one that was set. Secrets have the
//     prefixes of real ones and no checksum, so that no scanner takes them for such.
//
// It never opens a file and leaves nothing running when the test ends.
package actionpulsetest
