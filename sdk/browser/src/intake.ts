import { readTrackAnswer, trackBody } from './batch.js';
import type { GaveUp, Settings } from './options.js';
import type { Outbox } from './outbox.js';
import type { Delivery, Source } from './sender.js';
import type { Row } from './store.js';

/** An identify is sent with keepalive up to this size, so that the page may leave at once, as it does after a login. */
const keepaliveLimit = 16 << 10;

/** What the requests of track and identify are made from. */
export interface IntakeParams {
  settings: Settings;
  outbox: Outbox;
  /** Says aloud that rows are given up. */
  gaveUp: (reason: GaveUp['reason'], rows: Row[], code?: string) => void;
}

/**
 * Turns the outbox into requests, in the order of facts: batches of events,
 * which may be repeated since each has an id, and single identify requests,
 * which are not repeated unless they have certainly done nothing.
 */
export function createIntake({ settings, outbox, gaveUp }: IntakeParams): Source {
  const { log, maxBatchEvents, maxBatchBytes, onRejected } = settings;
  /** Halved by a 413, doubled by each success. */
  let limit = maxBatchEvents;

  const drop = (rows: Row[]): Delivery['drop'] => async (reason, code) => {
    await outbox.remove(rows.map((row) => row.key));
    gaveUp(reason, rows, code);
  };

  const track = (rows: Row[]): Delivery => ({
    path: '/v1/track',
    body: () => trackBody(rows),
    repeatable: true,
    async settle(body) {
      const rejected = readTrackAnswer(body, rows.length);
      if (!rejected) return false;
      await outbox.remove(rows.map((row) => row.key));
      log.debug('sent', body);
      for (const item of rejected) {
        const rejection = { ...item, eventId: rows[item.index]?.id ?? '' };
        log.warn('rejected', rejection);
        onRejected(rejection);
      }
      limit = Math.min(maxBatchEvents, limit * 2);
      return true;
    },
    shrink() {
      limit = Math.ceil(rows.length / 2);
      return rows.length > 1;
    },
    drop: drop(rows),
  });

  const identify = (row: Row): Delivery => ({
    path: '/v1/identify',
    body: () => row.body,
    repeatable: false,
    keepalive: row.size <= keepaliveLimit,
    mark: (sent) => outbox.update({ ...row, sent }),
    async settle(body) {
      if (!(body instanceof Object)) return false;
      await outbox.remove([row.key]);
      return true;
    },
    drop: drop([row]),
  });

  return {
    async next() {
      for (;;) {
        const rows = await outbox.next(limit);
        const head = rows[0];
        if (!head) return undefined;
        if (head.id) return track(firstBatch(rows, maxBatchBytes));
        if (!head.sent) return identify(head);
        await drop([head])('outcome_unknown', 'no_answer');
      }
    },
  };
}

/** Returns the events before the first identify, as many as fit. */
function firstBatch(rows: Row[], maxBytes: number): Row[] {
  let bytes = 0;
  const end = rows.findIndex((row, i) => !row.id || ((bytes += row.size + 1) > maxBytes && i > 0));
  return end < 0 ? rows : rows.slice(0, end);
}
