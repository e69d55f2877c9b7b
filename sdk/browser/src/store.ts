import { createDatabase } from './database.js';
import { fromJSON } from './json.js';
import { webStorage } from './keep.js';

/** One call of track or identify as it waits to be sent. Nothing in it changes, but `sent`. */
export interface Row {
  /** Sorts rows by the time of their facts. */
  key: string;
  /** The event_id; empty for identify. */
  id: string;
  /** Milliseconds since 1970 of the fact. */
  ts: number;
  /** The item, or the body of an identify, as JSON. */
  body: string;
  /** The bytes of body. */
  size: number;
  /** An identify whose request was begun: if it is found again, its outcome is unknown. */
  sent?: boolean;
}

/** Rows on disk, which all tabs of the origin share. */
export interface Store {
  put(row: Row): Promise<unknown>;
  /** Returns the oldest rows, at most max of each place; a row may be there twice, and the later one counts. */
  list(max?: number): Promise<Row[]>;
  remove(keys: string[]): Promise<unknown>;
  /** The most bytes it should hold. */
  capacity: number;
}

/**
 * Opens IndexedDB, with storage beside it: a page that is closed has no time
 * for a database, but it can still write there. Without IndexedDB, storage is
 * all there is.
 */
export async function openStore(name: string, storage: Store | undefined): Promise<Store | undefined> {
  const database = databaseStore(name);
  try {
    await database.list(1);
  } catch {
    return storage;
  }
  if (!storage) return database;
  return {
    ...database,
    // What is in both is the database's: it may have been changed there.
    list: async (max) => [...(await storage.list(max)), ...(await database.list(max))],
    remove: (keys) => Promise.all([storage.remove(keys), database.remove(keys)]),
  };
}

function databaseStore(name: string): Store {
  const db = createDatabase(name, (made) => made.createObjectStore('rows', { keyPath: 'key' }));
  const run = <T>(mode: IDBTransactionMode, work: (rows: IDBObjectStore) => IDBRequest<T> | undefined): Promise<T> =>
    db.run(mode, (tx) => work(tx.objectStore('rows')));
  return {
    put: (row) => run('readwrite', (rows) => rows.put(row)),
    list: (max) => run<Row[]>('readonly', (rows) => rows.getAll(null, max)),
    remove: (keys) => run('readwrite', (rows) => keys.map((key) => rows.delete(key))[0]),
    capacity: Infinity,
  };
}

/**
 * Rows in localStorage; undefined if that cannot be used. An entry for each
 * row: tabs that write at once do not overwrite one another. Rows are written
 * before put returns.
 */
export function storageStore(prefix: string): Store | undefined {
  if (!webStorage()) return undefined;
  const read = (name: string): Row[] => {
    const row = fromJSON(localStorage.getItem(name)) as Row;
    // What is not ours could not be removed by its key.
    return prefix + row?.key === name ? [row] : [];
  };
  return {
    put: async (row) => localStorage.setItem(prefix + row.key, JSON.stringify(row)),
    list: async (max) => {
      const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix));
      return names.sort().slice(0, max).flatMap(read);
    },
    remove: async (keys) => keys.forEach((key) => localStorage.removeItem(prefix + key)),
    capacity: 1 << 20,
  };
}
