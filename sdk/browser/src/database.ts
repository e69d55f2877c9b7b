/** A database of IndexedDB, opened when it is first used and again after it was closed under us. */
export interface Database {
  /**
   * Runs work in one transaction over all stores and returns what the request
   * that it returns has found. Resolves once the transaction is complete.
   */
  run<T>(mode: IDBTransactionMode, work: (tx: IDBTransaction) => IDBRequest<T> | undefined): Promise<T>;
}

/** Opening takes milliseconds; where it hangs, as it did in some browsers, there is none. */
const openTimeout = 3_000;

/** The database of a name, whose stores are made by upgrade the first time. */
export function createDatabase(name: string, upgrade: (db: IDBDatabase) => void): Database {
  let opened: Promise<IDBDatabase> | undefined;
  const transact = async (mode: IDBTransactionMode, again = true): Promise<IDBTransaction> => {
    const db = await (opened ??= open(name, upgrade));
    try {
      return db.transaction([...db.objectStoreNames], mode);
    } catch (error) {
      if (!again) throw error;
      opened = undefined;
      return transact(mode, false);
    }
  };
  return {
    async run(mode, work) {
      const tx = await transact(mode);
      return new Promise((resolve, reject) => {
        const request = work(tx);
        tx.oncomplete = () => resolve(request?.result as never);
        tx.onabort = () => reject(tx.error);
      });
    },
  };
}

function open(name: string, upgrade: (db: IDBDatabase) => void): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    setTimeout(reject, openTimeout);
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => upgrade(request.result);
    request.onsuccess = () => {
      const db = request.result;
      // A later version of this package may want to change it.
      db.onversionchange = () => db.close();
      resolve(db);
    };
    request.onerror = reject;
  });
}
