// Package idempotency lets a request be sent again without its work being done
// again.
//
// # What a retry can do
//
// A client that hears nothing does not know whether its request was lost on the
// way there or the answer on the way back. If it gives up, the work may not be
// done; if it sends the request again, the work may be done twice. And it does
// not always decide: Go's http.Client, proxies and queues repeat by themselves.
// The way out is a name for the unit of work, chosen by the client before the
// first attempt and sent with each one, in the header Idempotency-Key. The
// server does the work for the first request and answers the others.
//
// # What a key names
//
// A key names one unit of work, for example "order-42:email", not an attempt: a
// key made anew for each attempt protects nothing. Three things decide which
// unit of work a key names and whether a request may have its answer:
//
//   - Scope: whose key it is. It must name the principal (user, tenant, project),
//     or one caller could read another's answer by guessing a key.
//   - Namespace: which operations share their keys. Within one scope and
//     namespace a key names one unit of work, whatever the operation.
//   - Fingerprint: what makes a repeat the same request. A key that comes with
//     another request is a conflict, and nothing is run: whoever sent it believes
//     that something is going to happen which is not. [RawBytes] compares bodies
//     byte by byte, [NormalJSON] by value, [ChosenFields] by a few members;
//     [Fact] values (method, path, customer) are compared beside them.
//
// # What takes a key
//
// Not every answer should be repeated for ever. [OnSuccess] leaves the key free
// after a refusal: who had too little money tops up and sends the same request
// again. [OnResource] takes it as soon as something exists (an execution, an
// order) that a repeat can read, also when it has failed. [OnAnswer] takes it
// with any answer. What a repeat then gets is the first answer, byte for byte, or
// the resource as it is now ([Repeat]).
//
// # Two forms
//
// The atomic form (package sqlstore: Store.Do and Store.Run) makes the claim on
// the key the first row of the transaction that does the work, and the answer its
// last. All of it commits together or not at all. There is no state "running"
// that anyone could see or that a crash could leave behind, a refusal is a
// rollback, and a second request waits for the first one's transaction. The work
// is done exactly once. It must consist of writes to that one database, and be
// short. Use it wherever you can.
//
// The leased form ([Middleware]) is for work that is anything else: calls to
// other services, long computations, handlers that cannot be changed. A claim is
// committed first, the work is done, the answer is recorded, and only then said.
// The claim is a lease: it is renewed while the owner lives, and passes to the
// next repeat when it does not. Owners are numbered by an epoch, and an owner
// whose claim has passed on can write nothing more. The answer is recorded exactly
// once, and at any time one owner is entitled to work. But the work itself is done
// at least once, if the process can die in the midst of it: see the third row.
//
//	what dies, and when             atomic form             leased form
//	──────────────────────────────  ──────────────────────  ───────────────────────────────
//	server, before the claim        nothing happened;       the same
//	                                a repeat does the work
//	server, in the midst of work    rolled back;            busy until the lease ends; then
//	                                a repeat does the work  a repeat does the work again,
//	                                                        with epoch 2
//	server, after work, before      cannot happen           as in the row above: the work is
//	its record                                              done twice unless the handler
//	                                                        looks (Lease.Epoch, Resource)
//	answer, after COMMIT            a repeat is answered    the same
//	COMMIT's own answer             Run asks the key        Complete is repeated by the owner
//	client, in the midst of work    as its context says     the work goes on
//	owner stalls past its lease     there is no lease       another takes over; the late
//	                                                        owner's client hears that one's
//	                                                        answer, never its own
//
// In the leased form, a handler whose [Lease.Epoch] is above 1 must first look at
// what an owner before it did. Let it note what it makes as soon as it exists
// ([Lease.Made]), and send a key derived from the same unit of work downstream, so
// that others can do for it what this package does for its clients.
//
// # Retention
//
// A key should outlive every retry, dead letter queue and impatient person. Bytes
// cost more than names: [Retention] lets the answer go after a while and keeps the
// key with what a repeat is compared by (its tombstone). Only if Retention.Key is
// set is a key ever forgotten, and then a late repeat is new work. What a repeat
// hears depends on the times in the record and on the clock, never on when rows
// were swept.
//
// # What not to do
//
//   - Read the key, do the work, insert the key last. Two requests at once both
//     find nothing, both work, and one fails at the end; it tells its client
//     "insufficient funds" about a charge that has succeeded. The claim comes first.
//   - Keep key and work in two stores. No order of two commits survives a crash
//     between them.
//   - Make keys of time, randomness or an attempt's number.
//   - Leave the principal out of the scope.
//   - Leave the fingerprint out: a key that was used by mistake would answer
//     "done" for what was never done.
//   - Keep every header: a replayed Set-Cookie gives away a session.
//   - Retry a conflict. It will not go away; read what the key names.
//
// # Ready policies
//
//	                  ReleaseMarker         CreditMovement          Execution           IETF
//	key               8–128 visible ASCII,  1–190 of any text       as for movements    1–255 visible
//	                  no comma                                                          ASCII, quoted
//	no key / bad key  422 / 422             400 / 422               400 / 422           400 / 400
//	compares          JSON by value         bytes, then type and    bytes, for ever     the bytes
//	                                        amount
//	another request   409                   409                     409                 422
//	still running     409                   409                     409                 409
//	taken by          success               a success               the execution       any answer
//	a repeat gets     the marker as it is,  the first answer; when  the execution as    the first answer
//	                  200                   it has gone, the entry  it is, 200
//	key is kept       for ever              for ever                for ever            as the answer
//
// A policy is a value: take one, change it, and ask [Policy.Validate].
//
// The package does no retries for clients, never decides who may call, and knows
// no database: [Store] is the seam, and [Judge], which is pure, decides what a key
// means. Stores must pass everything they know to it and add no rule of their own.
package idempotency
