import { fromJSON } from './json.js';
import type { Keep } from './keep.js';

/**
 * Failures in a row, and the time before which nothing is sent. All tabs share
 * it and a reload does not shorten it.
 */
export interface Pause {
  failures(): number;
  /** Milliseconds until something may be sent; 0: now. */
  left(now: number): number;
  /** Counts failures and waits. A rest is what follows the last attempt. */
  begin(now: number, wait: number, failures: number, rest: boolean): void;
  end(): void;
  /** Ends a rest, but no other wait: the page was loaded, or the network is back. */
  wake(): void;
}

interface State {
  at: number;
  until: number;
  failures: number;
  rest: boolean;
}

const none: State = { at: 0, until: 0, failures: 0, rest: false };

/** The pause that is in keep. */
export function createPause(keep: Keep): Pause {
  const read = (): State => (fromJSON(keep.get('pause')) as State | undefined) ?? none;
  const begin: Pause['begin'] = (at, wait, failures, rest) =>
    keep.set('pause', JSON.stringify({ at, until: at + wait, failures, rest }));
  const end = (): void => keep.set('pause', '');
  return {
    failures: () => read().failures,
    left(now) {
      const { at, until, failures, rest } = read();
      if (until <= now) return 0;
      // The clock was set back since then: the wait begins anew, and is no longer than it was.
      if (now < at) begin(now, until - at, failures, rest);
      return until - Math.max(now, at);
    },
    begin,
    end,
    wake() {
      if (read().rest) end();
    },
  };
}
