import { newID } from './id.js';
import type { Keep } from './keep.js';

/**
 * Runs work while no other tab of the origin runs work under the same name.
 * renew says that the work still goes on; it must be called at least every
 * [leaseTime] milliseconds. It returns 0; or, if that was not done, as where a
 * computer slept, and another tab is at work now, in how many milliseconds to
 * ask for the lock again.
 */
export type Lock = (work: (renew: () => number) => Promise<void>) => Promise<void>;

/** How long a tab without Web Locks that was closed in the middle holds the others up. */
export const leaseTime = 40_000;

/** The lock of a name: a Web Lock, which ends with its tab, else a lease in keep. */
export function createLock(name: string, keep: Keep): Lock {
  const lease = leaseLock(keep);
  return (work) => {
    const { locks } = navigator as { locks?: LockManager };
    // It is refused where a page has no origin, as in a sandbox.
    return locks?.request(name, () => work(() => 0)).catch(() => lease(work)) ?? lease(work);
  };
}

/**
 * A lease is an owner and an end. Two tabs that take it in the same moment are
 * told apart by reading it again after a while; should both go on, ids keep
 * what they send from being stored twice.
 */
function leaseLock(keep: Keep): Lock {
  const me = newID();
  const take = (): number => {
    keep.set('lease', `${Date.now() + leaseTime} ${me}`);
    return 0;
  };
  const mine = (): boolean => keep.get('lease').endsWith(me);
  const free = (): boolean => {
    const left = parseInt(keep.get('lease')) - Date.now();
    return !(left > 0 && left <= leaseTime);
  };
  return async (work) => {
    while (!mine()) {
      if (free()) take();
      await new Promise((resolve) => setTimeout(resolve, 100 + 400 * Math.random()));
    }
    try {
      await work(() => (mine() ? take() : 1_000));
    } finally {
      if (mine()) keep.set('lease', '');
    }
  };
}
