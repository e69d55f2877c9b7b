import { member } from './json.js';
import type { Row } from './store.js';

/** Returns the body of a request of /v1/track. sent_at is when it is sent, so it is new for each attempt. */
export function trackBody(rows: readonly Row[]): string {
  return `{"sent_at":${Date.now()},"events":[${rows.map((row) => row.body).join()}]}`;
}

/** An item that the server did not accept, as its answer names it. */
export interface RejectedItem {
  index: number;
  code: string;
  message: string;
}

/**
 * Reads the 202 of a batch of so many items. Undefined unless it accounts for
 * every one of them: accepted and rejected are the batch, and each rejection is
 * of another item.
 */
export function readTrackAnswer(body: unknown, items: number): RejectedItem[] | undefined {
  const rejected = member(body, 'rejected');
  const duplicates = member(body, 'duplicates') as number;
  const places = new Set(Array(items).keys());
  const whole =
    Array.isArray(rejected) &&
    rejected.every((item) => places.delete(member(item, 'index') as number)) &&
    places.size === member(body, 'accepted') &&
    duplicates >= 0 &&
    duplicates <= places.size;
  return whole ? rejected : undefined;
}
