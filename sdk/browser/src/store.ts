import { createDatabase } from './database.js';
import { fromJSON, isObject } from './json.js';
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
  /** Returns the oldest rows first, at most max. */
  list(max?: number): Promise<Row[]>;
  remove(keys: string[]): Promise<unknown>;
  /** The most bytes it should hold. */
  capacity: number;
}

/** Opens IndexedDB, else localStorage; undefined if neither can be used. */
export async function openStore(prefix: string): Promise<Store | undefined> {
  const database = databaseStore(prefix);
  try {
    await database.list(1);
    return database;
  } catch {
    return webStorage() && storageStore(prefix + 'row:');
  }
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

/** An entry for each row: tabs that write at once do not overwrite one another. */
function storageStore(prefix: string): Store {
  const read = (name: string): Row[] => {
    const row = fromJSON(localStorage.getItem(name));
    return isObject(row) ? [row as unknown as Row] : [];
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
