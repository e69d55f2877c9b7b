/**
 * The client for web pages: events are recorded in an outbox that outlives the
 * page and are sent until the server has them, each stored once.
 *
 * What holds:
 * - an event's id, time, visitor and session are fixed when it is recorded;
 * - it leaves the outbox when the server has accounted for it, or aloud;
 * - over all tabs one request is under way at a time;
 * - it is not sent later than 47 hours after it happened;
 * - without consent nothing is stored or sent.
 */
export { type Client, createClient, type Extension } from './client.js';
export type { Fact } from './item.js';
export type { Consent, Context, GaveUp, GaveUpReason, Logger, Options, Rejection, Settings } from './options.js';
export type { Delivery, Source } from './sender.js';
export { version } from './version.js';
