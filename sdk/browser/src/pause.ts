import type { Keep } from './keep.js';

/**
 * Failures in a row, and the time before which nothing is sent. All tabs share
 * it and a reload does not shorten it.
 */
export interface Pause {
  failures(): number;
  /** Milliseconds until something may be sent; 0: now. */
  left(): number;
  /** Counts failures and waits. A rest is what follows the last attempt. */
  begin(wait: number, failures: number, rest: boolean): void;
  end(): void;
  /** Ends a rest, but no other wait: the page was loaded, or the network is back. */
  wake(): void;
}

/** The pause that is in keep, as four numbers: when it began, when it ends, failures, whether it is a rest. */
export function createPause(keep: Keep): Pause {
  const read = (): number[] => keep.get('pause').split(' ').map(Number);
  const begin: Pause['begin'] = (wait, failures, rest) =>
    keep.set('pause', [Date.now(), Date.now() + wait, failures, +rest].join(' '));
  const end = (): void => keep.set('pause', '');
  return {
    failures: () => read()[2] ?? 0,
    left() {
      const now = Date.now();
      const [at = 0, until = 0, failures = 0, rest = 0] = read();
      if (until <= now) return 0;
      // The clock was set back since then: the wait begins anew, and is no longer than it was.
      if (now < at) begin(until - at, failures, !!rest);
      return until - Math.max(now, at);
    },
    begin,
    end,
    wake() {
      if (read()[3]) end();
    },
  };
}
