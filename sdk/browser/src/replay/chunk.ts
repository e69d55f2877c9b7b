import { createDatabase } from '../database.js';

/** A piece of a recording. Its number was given to it when it was stored and never changes. */
export interface Chunk {
  /** Sorts chunks by age. */
  key?: number;
  session: string;
  number: number;
  /** Milliseconds since 1970 of its first event. */
  ts: number;
  /** The request's body. */
  body: string;
  size: number;
  /** Whether it holds a full snapshot, from which playback can begin. */
  anchor: boolean;
}

/** What is made into a chunk: everything but its number, and its body once that is known. */
export type NewChunk = Omit<Chunk, 'key' | 'number' | 'body'> & { body: (number: number) => string };

/** Chunks on disk, and how far each session has come. All tabs share them. */
export interface ChunkStore {
  /**
   * Numbers a chunk and stores it, in one transaction: no two tabs get one
   * number, and none is lost. Returns how many chunks of the session have been
   * lost so far.
   */
  add(chunk: NewChunk): Promise<number>;
  /** Returns the oldest chunk. */
  first(): Promise<Chunk | undefined>;
  remove(chunk: Chunk): Promise<void>;
  /** Removes a chunk that will never be sent, and counts it as lost. */
  lose(chunk: Chunk): Promise<void>;
  /** Returns the oldest chunks that do not fit in so many bytes. */
  excess(bytes: number): Promise<Chunk[]>;
  clear(): Promise<void>;
}

interface Session {
  session: string;
  next: number;
  lost: number;
  /** When the last chunk was stored. */
  at: number;
}

/** What is known of a session is forgotten after so many milliseconds without a chunk. */
const sessionKept = 7 * 24 * 3_600_000;

/** The store of a name. Its methods reject where IndexedDB cannot be used. */
export function openChunkStore(name: string): ChunkStore {
  const db = createDatabase(name, (made) => {
    made.createObjectStore('chunks', { keyPath: 'key', autoIncrement: true });
    made.createObjectStore('sessions', { keyPath: 'session' });
  });

  /** Changes what is known of a session, within a transaction. */
  const change = (tx: IDBTransaction, session: string, work: (state: Session) => void): void => {
    const sessions = tx.objectStore('sessions');
    const found: IDBRequest<Session | undefined> = sessions.get(session);
    found.onsuccess = () => {
      const state = found.result ?? { session, next: 0, lost: 0, at: 0 };
      work(state);
      sessions.put(state);
    };
  };

  const forgetSessions = (tx: IDBTransaction, before: number): void => {
    const cursor = tx.objectStore('sessions').openCursor();
    cursor.onsuccess = () => {
      const at = cursor.result;
      if (!at) return;
      if ((at.value as Session).at < before) at.delete();
      at.continue();
    };
  };

  return {
    async add({ body, ...chunk }) {
      let lost = 0;
      await db.run('readwrite', (tx) => {
        forgetSessions(tx, chunk.ts - sessionKept);
        change(tx, chunk.session, (state) => {
          const number = state.next++;
          state.at = chunk.ts;
          lost = state.lost;
          tx.objectStore('chunks').add({ ...chunk, number, body: body(number) });
        });
        return undefined;
      });
      return lost;
    },
    first: async () => (await db.run<Chunk[]>('readonly', (tx) => tx.objectStore('chunks').getAll(null, 1)))[0],
    async remove(chunk) {
      await db.run('readwrite', (tx) => tx.objectStore('chunks').delete(chunk.key as number));
    },
    async lose(chunk) {
      await db.run('readwrite', (tx) => {
        change(tx, chunk.session, (state) => state.lost++);
        return tx.objectStore('chunks').delete(chunk.key as number);
      });
    },
    async excess(bytes) {
      const chunks = await db.run<Chunk[]>('readonly', (tx) => tx.objectStore('chunks').getAll());
      let held = 0;
      let kept = 0;
      for (const chunk of [...chunks].reverse()) {
        held += chunk.size;
        if (held > bytes) break;
        kept++;
      }
      return chunks.slice(0, chunks.length - kept);
    },
    async clear() {
      await db.run('readwrite', (tx) => {
        tx.objectStore('chunks').clear();
        return tx.objectStore('sessions').clear() as IDBRequest<undefined>;
      });
    },
  };
}
