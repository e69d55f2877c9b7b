import { trackBody } from './batch.js';
import type { Row } from './store.js';

/** What all beacons and keepalive requests under way may hold together, less what surrounds events. */
const budget = 64 * 1024 - 1024;

/**
 * Sends rows as a beacon, as far as the budget goes, and returns those that the
 * browser has taken. It never says what became of them, so they stay in the
 * outbox: sent again by fetch, they are duplicates by their ids.
 */
export function sendBeacon(url: string, rows: readonly Row[]): Row[] {
  let left = budget;
  let part = rows.filter((row) => row.size < left && (left -= row.size + 1));
  // It is refused when other requests use the budget, so half of it is tried then. Some browsers have none.
  // A text is sent as text/plain, which needs no preflight.
  while (part.length && !navigator.sendBeacon?.(url, trackBody(part))) part = part.slice(0, part.length >> 1);
  return part;
}
