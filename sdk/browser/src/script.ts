import { type Client, createClient } from './client.js';
import { member } from './json.js';
import type { Options } from './options.js';

/**
 * The build for a script tag: puts the global `actionpulse` in place of the
 * queue that the snippet in the page has made, and carries out what is in it.
 */

/** A call that was made before the script was there: method, arguments, and the time and id of the fact. */
type Call = [method: string, args: unknown[], ts?: number, eventId?: string];

const page = window as unknown as { actionpulse?: unknown };
const queue = page.actionpulse;
let client: Client | undefined;
/** Calls that wait for init. */
const waiting: Call[] = [];

function init(options: Options): Client {
  if (!client) {
    client = createClient(options);
    Object.assign(api, client);
    waiting.splice(0).forEach(push);
  }
  return client;
}

function push(call: Call): void {
  const [method, args, ts, eventId] = call;
  if (method === 'init') init(args[0] as Options);
  else if (!client) waiting.push(call);
  // Only those about facts have a third argument. What it does not say was fixed when the call was made.
  else (client as unknown as Record<string, (...args: unknown[]) => void>)[method]?.(args[0], args[1], { ts, eventId, ...(args[2] as object) });
}

const api: Record<string, unknown> = { init, push };
for (const method of ['track', 'identify', 'reset', 'setConsent', 'optOut', 'optIn']) {
  api[method] = (...args: unknown[]) => push([method, args, Date.now()]);
}
// Loaded a second time, the script leaves the first client as it is.
if (Array.isArray(queue)) {
  page.actionpulse = api;
  queue.forEach(push);
  // Some may have kept the queue itself.
  queue.push = push as typeof queue.push;
} else if (!member(queue, 'init')) page.actionpulse = api;
