import type { Client } from '../../src/index.js';
import type { Replay, ReplayOptions } from '../../src/replay/index.js';

/** What the test pages put into their window. */
declare global {
  var client: Client;
  var said: [kind: string, value: unknown][];
  var startReplay: (options?: ReplayOptions) => Promise<Replay>;
  var early: { id: string; ts: string; name: string };
  var load: (src: string) => Promise<void>;
  var actionpulse: Client;
  var actionpulseReplay: { start(client: Client, options?: ReplayOptions & { src?: string }): Promise<Replay> };
}
