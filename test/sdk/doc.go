// Package sdk holds the tests that the fake server for users' tests
// (sdk/actionpulse/actionpulsetest) and the real server pass alike. Each scenario
// is one conversation over raw HTTP, held with both; what they have answered must
// be what the scenario demands, and equal to each other, member by member. Only
// ids, present times, secrets, cursors and the wording of messages may differ.
package sdk
