// Package actionpulse is the Go client of ActionPulse: credits, flows and
// executions with a project key ([Client]), the application API with access
// tokens ([App]), release markers from CI/CD ([DeployMarkers]), and events
// with a durable outbox ([Tracker]).
//
// # What it keeps
//
// A request is repeated by the table of package retry and by nothing else:
// reads, events with ids and work under an Idempotency-Key are sent again
// until attempts or time run out; any other change is sent once. When it is
// not known whether a change was made, the [*Error] says so
// ([Error.Applied]), and the caller reads the state before deciding anew.
//
// An Idempotency-Key names one unit of work. TopUp, Charge, Adjust and
// Execute mint one for each call, which protects that call and its repeats
// within this package only. A program that calls again itself (a loop, a
// queue's job, a user who presses twice) names the unit of work with
// [WithKey]: order-42:email, or the id of the job.
//
// A body is encoded once a call, so that every attempt carries the same bytes.
//
// # What it never does
//
// It never sends a refresh token twice, never follows a redirect, never puts
// a credential into an error, a log or a URL, and never reads an amount into
// a floating-point number: amounts are decimal strings.
//
// The package imports the standard library, github.com/google/uuid, and
// packages api and retry of this module.
package actionpulse
