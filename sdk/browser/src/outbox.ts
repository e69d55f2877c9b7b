import type { GaveUpReason, Settings } from './options.js';
import type { Row, Store } from './store.js';

/**
 * Holds rows from the moment of the fact until the server has them. What this
 * page has added is also in memory: a page that is closed can read nothing
 * else, and it is all there is where no store can be used.
 */
export interface Outbox {
  /** Keeps a row. The write begins at once. */
  add(row: Row): void;
  /** Returns the oldest rows of all tabs that may still be sent, at most max. */
  next(max: number): Promise<Row[]>;
  /** Writes a row that has changed. */
  update(row: Row): Promise<void>;
  remove(keys: string[]): Promise<void>;
  /** Returns this page's rows that nobody is known to have sent and that may still be sent. */
  own(): Row[];
  /** Writes what is not known to be on disk yet where that takes no time: the page may be closed now. */
  rescue(): void;
  /** Throws everything away. */
  clear(): Promise<void>;
}

/** A row older than so many milliseconds is not sent: the server forgets ids after 48 hours. */
export const maxAge = 47 * 3_600_000;

/** The bounds are enforced after so many rows, so they may be exceeded by as many. */
const trimEvery = 50;

/** What an outbox needs from outside. */
export interface OutboxParams {
  open: () => Promise<Store | undefined>;
  /** Where a row is written before put returns. */
  storage: Store | undefined;
  settings: Settings;
  gaveUp: (reason: GaveUpReason, rows: Row[]) => void;
}

export function createOutbox({ open, storage, settings, gaveUp }: OutboxParams): Outbox {
  const { log } = settings;
  const own = new Map<string, Row>();
  /** Keys of own rows that are known to be on disk. */
  const stored = new Set<string>();
  let opening: Promise<Store | undefined> | undefined;
  let writing = Promise.resolve();
  let untrimmed = trimEvery;
  let trimming = Promise.resolve();

  const store = (): Promise<Store | undefined> => (opening ??= open());
  const forget = (keys: Iterable<string>): void => {
    for (const key of keys) {
      own.delete(key);
      stored.delete(key);
    }
  };

  const write = async (row: Row): Promise<void> => {
    try {
      const opened = await store();
      // It may have been sent or thrown away meanwhile.
      if (!opened || !own.has(row.key)) return;
      await opened.put(row);
      stored.add(row.key);
    } catch (error) {
      log.warn('not stored', error);
    }
  };

  const list = async (max?: number): Promise<Row[]> => {
    await writing;
    const known = [...stored];
    const onDisk = await (await store())?.list(max).catch(() => undefined);
    const found = new Map(onDisk?.map((row) => [row.key, row]));
    // A row that was on disk and is not any more was sent by another tab.
    if (onDisk && onDisk.length < (max ?? Infinity)) forget(known.filter((key) => !found.has(key)));
    for (const row of own.values()) if (!onDisk || !stored.has(row.key)) found.set(row.key, row);
    return [...found.values()].sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, max);
  };

  const remove = async (keys: string[]): Promise<void> => {
    forget(keys);
    await writing;
    await (await store())?.remove(keys).catch((error: unknown) => {
      // Else the same would be sent again and again. What is on disk is for the next page.
      opening = Promise.resolve(undefined);
      log.warn('not removed', error);
    });
  };

  const giveUp = async (reason: GaveUpReason, rows: Row[]): Promise<void> => {
    if (!rows.length) return;
    await remove(rows.map((row) => row.key));
    gaveUp(reason, rows);
  };

  const trim = async (): Promise<void> => {
    const rows = await list();
    const capacity = Math.min(settings.maxBufferBytes, (await store())?.capacity ?? Infinity);
    let bytes = 0;
    const { maxBufferEvents } = settings;
    // From the newest on, as many as there is room for.
    const excess = rows.reverse().filter((row, i) => (bytes += row.size) > capacity || i >= maxBufferEvents);
    await giveUp('overflow', excess.reverse());
  };

  return {
    add(row) {
      own.set(row.key, row);
      const written = write(row);
      writing = writing.then(() => written);
      if (++untrimmed > trimEvery) {
        untrimmed = 0;
        trimming = trimming.then(trim);
      }
    },
    async next(max) {
      for (;;) {
        const rows = await list(max);
        const old = rows.filter(isOld);
        await giveUp('too_old', old);
        if (!old.length) return rows;
      }
    },
    update: (row) => {
      own.set(row.key, row);
      return write(row);
    },
    remove,
    own: () => [...own.values()].filter((row) => !isOld(row)),
    rescue: () => own.forEach((row) => stored.has(row.key) || storage?.put(row).catch(() => undefined)),
    async clear() {
      own.clear();
      stored.clear();
      const rows = await list();
      // What this page has recorded since is another matter.
      await remove(rows.map((row) => row.key).filter((key) => !own.has(key)));
    },
  };
}

function isOld(row: Row): boolean {
  return Date.now() - row.ts > maxAge;
}
