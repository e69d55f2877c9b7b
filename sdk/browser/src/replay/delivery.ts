import { isObject, member } from '../json.js';
import type { GaveUpReason, Settings } from '../options.js';
import { maxAge } from '../outbox.js';
import type { Source } from '../sender.js';
import type { Chunk, ChunkStore } from './chunk.js';

/** What chunks are sent from. */
export interface DeliveryParams {
  settings: Settings;
  store: ChunkStore;
  /** Called after a chunk was lost, with how: playback needs the whole page again. */
  lost: (chunk: Chunk, reason: GaveUpReason | 'conflict') => void;
}

/** Stored chunks as a source, within a bound. */
export interface ReplaySource extends Source {
  /** If more than so many bytes are stored, gives up the oldest chunks until half of that is left. */
  evict(bytes: number): Promise<void>;
}

/**
 * Turns stored chunks into requests, oldest first. A chunk may be repeated: it
 * is known by its session and number.
 */
export function createReplaySource({ settings, store, lost }: DeliveryParams): ReplaySource {
  const { log, onGaveUp } = settings;

  const giveUp = async (chunk: Chunk, reason: GaveUpReason, code?: string): Promise<void> => {
    await store.lose(chunk);
    const ids = [`${chunk.session}/${chunk.number}`];
    log.warn('a part of the recording was given up', { reason, code, ids });
    onGaveUp({ reason, ids, ...(code && { code }) });
    lost(chunk, reason);
  };

  /** The number was taken by other content: what this chunk holds is not stored. */
  const conflicted = async (chunk: Chunk): Promise<void> => {
    await store.lose(chunk);
    log.warn('another part of the recording has the same number', `${chunk.session}/${chunk.number}`);
    lost(chunk, 'conflict');
  };

  return {
    async evict(bytes) {
      // Half of the room at once, since each loss costs a snapshot of the whole page.
      if (!(await store.excess(bytes)).length) return;
      for (const chunk of await store.excess(bytes / 2)) await giveUp(chunk, 'overflow');
    },
    async next() {
      for (;;) {
        const chunk = await store.first();
        if (!chunk) return undefined;
        if (Date.now() - chunk.ts > maxAge) {
          await giveUp(chunk, 'too_old');
          continue;
        }
        return {
          path: '/v1/replay',
          body: () => chunk.body,
          repeatable: true,
          async settle(body) {
            if (!isObject(body) || typeof body['duplicate'] !== 'boolean') return false;
            if (member(body, 'conflict') === true) await conflicted(chunk);
            else await store.remove(chunk);
            return true;
          },
          drop: (reason, code) => giveUp(chunk, reason, code),
        };
      }
    },
  };
}
