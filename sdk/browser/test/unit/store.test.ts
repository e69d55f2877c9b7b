import { IDBFactory, IDBObjectStore } from 'fake-indexeddb';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FakePage, refusal } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const minute = 60 * second;
const paths = (): string[] => page.requests.map(({ path }) => path);
const names = (): string[] => page.items().map((item) => item.event);
/** What the browser keeps, apart from the choice itself. */
const kept = (): string[] => Object.keys(page.storage).filter((name) => !name.endsWith(':consent'));

describe('where events are kept', () => {
  test.each([
    ['IndexedDB', 0, () => undefined],
    ['localStorage', 1, () => vi.stubGlobal('indexedDB', undefined)],
    ['localStorage, since IndexedDB fails', 1, () => vi.stubGlobal('indexedDB', { open: () => fail(0) })],
    ['localStorage, since IndexedDB hangs', 1, () => vi.stubGlobal('indexedDB', { open: () => ({}) })],
  ])('%s: they outlive the page, with one id', async (_name, entries, prepare) => {
    prepare();
    page.replies = ['lost', 'lost', 'lost'];
    const id = page.client().track('a', { n: 1 });
    await page.pass(3_100);
    expect(kept().filter((name) => name.includes('row:'))).toHaveLength(entries);
    page.load();
    page.client();
    await page.pass(6 * second);
    await page.pass(minute);
    expect(page.requests).toHaveLength(4);
    expect(new Set(page.items().map((item) => item.event_id))).toEqual(new Set([id]));
    expect(kept().filter((name) => name.includes('row:'))).toEqual([]);
  });

  test('memory, where there is nothing else', async () => {
    for (const name of ['indexedDB', 'localStorage']) vi.stubGlobal(name, undefined);
    page.replies = ['lost'];
    const client = page.client();
    client.track('a');
    await page.pass(3 * second);
    client.track('b');
    await client.flush();
    await page.pass(minute);
    expect(names()).toEqual(['a', 'a', 'b']);
  });

  test('memory, when writing fails, and that is said', async () => {
    const client = page.client();
    client.track('a');
    await client.flush();
    const put = vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
      throw new Error('no room');
    });
    client.track('b');
    await client.flush();
    expect(put).toHaveBeenCalled();
    expect(names()).toEqual(['a', 'b']);
    expect(page.warned('not stored')).toBe(1);
  });

  test('memory, when sent events cannot be removed: they are not sent again and again', async () => {
    const client = page.client();
    vi.spyOn(IDBObjectStore.prototype, 'delete').mockImplementation(() => {
      throw new Error('read only');
    });
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    await page.pass(minute);
    expect(names()).toEqual(['a', 'b']);
    expect(page.warned('not removed')).toBe(1);
  });

  test('a sandbox, which has no origin: memory', async () => {
    vi.stubGlobal('indexedDB', undefined);
    vi.stubGlobal('localStorage', undefined);
    Object.assign(navigator, { locks: { request: () => Promise.reject(new Error('no origin')) } });
    page.client().track('a');
    await page.pass(6 * second);
    expect(names()).toEqual(['a']);
  });

  test('localStorage, when the page is closed before the database has written', async () => {
    page.replies = [refusal(500, 'internal')];
    const client = page.client();
    client.track('a');
    await client.flush();
    client.track('b');
    page.fire('pagehide');
    // Whatever the page has begun to write does not happen any more.
    vi.stubGlobal('indexedDB', new IDBFactory());
    page.load();
    page.client();
    await page.pass(5 * second);
    expect(names()).toContain('b');
    expect(page.beacons).toEqual([]);
    expect(kept().filter((name) => name.includes('row:'))).toEqual([]);
  });

  test('a row that was rescued and written is sent once', async () => {
    page.online = false;
    const client = page.client();
    client.identify('ada');
    client.track('a');
    page.fire('pagehide');
    expect(kept().filter((name) => name.includes('row:'))).toHaveLength(2);
    await page.pass();
    page.online = true;
    page.fire('online');
    await page.pass();
    page.load();
    page.client();
    await page.pass(5 * second);
    expect(paths()).toEqual(['/v1/identify', '/v1/track']);
    expect(kept().filter((name) => name.includes('row:'))).toEqual([]);
  });

  test('a database that was closed under us is opened again', async () => {
    const client = page.client();
    client.track('a');
    await client.flush();
    const open = indexedDB.open('actionpulse:default:', 2);
    await page.pass();
    expect(open.readyState).toBe('done');
    open.result.close();
    indexedDB.deleteDatabase('actionpulse:default:');
    await page.pass();
    client.track('b');
    await client.flush();
    expect(names()).toEqual(['a', 'b']);
    page.load();
  });
});

/** An open that fails. */
function fail(ms: number): unknown {
  const request: { onerror?: (event: unknown) => void } = {};
  setTimeout(() => request.onerror?.({}), ms);
  return request;
}
