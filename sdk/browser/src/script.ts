import { type Client, createClient } from './client.js';
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
  // Only those about facts have a third argument.
  else (client as unknown as Record<string, (...args: unknown[]) => void>)[method]?.(args[0], args[1], args[2] ?? { ts, eventId });
}

const api: Record<string, unknown> = { init, push };
for (const method of ['track', 'identify', 'reset', 'setConsent', 'optOut', 'optIn']) {
  api[method] = (...args: unknown[]) => push([method, args, Date.now()]);
}
page.actionpulse = api;
if (Array.isArray(queue)) queue.forEach(push);
