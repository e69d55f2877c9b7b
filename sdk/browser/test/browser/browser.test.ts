import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import type { Seen, StoredChunk } from './network.js';
import { type Bench, startBench, type Visit } from './setup.js';

let bench: Bench;
let visit: Visit;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());
beforeEach(async () => {
  visit = await bench.visit();
});
afterEach(() => visit?.close());

const track = (page: Page, name: string, properties?: Record<string, unknown>): Promise<string> =>
  page.evaluate(([n, p]) => client.track(n as string, p as Record<string, unknown>), [name, properties] as const);
const flush = (page: Page): Promise<void> => page.evaluate(() => client.flush());
const said = (page: Page): Promise<[string, unknown][]> => page.evaluate(() => globalThis.said);
const items = (seen: Seen | undefined): Record<string, unknown>[] => (seen ? JSON.parse(seen.body).events : []);
const answer = (seen: Seen | undefined): Record<string, unknown> => JSON.parse(seen?.answer ?? '{}');

/** Returns how many rows are in the page's outbox. */
const waiting = (page: Page): Promise<number> =>
  page.evaluate(
    () =>
      new Promise<number>((resolve, reject) => {
        const open = indexedDB.open('actionpulse:default:', 1);
        open.onerror = () => reject(open.error);
        open.onsuccess = () => {
          const count = open.result.transaction('rows').objectStore('rows').count();
          count.onsuccess = () => (open.result.close(), resolve(count.result));
        };
      }),
  );

test('events of a page of another origin are stored, with the key in a header', async () => {
  const page = await visit.open();
  const id = await track(page, 'cors', { price: 49.5, text: 'cut \ud83d here' });
  await page.evaluate(() => client.identify('ada', { plan: 'pro' }));
  await track(page, 'cors');
  await flush(page);
  expect(await bench.stored({ cors: 2, identify: 1 })).toEqual({ cors: 2, identify: 1 });
  const [, stored] = await bench.server.events('cors');
  expect(stored).toMatchObject({
    event_id: id,
    key_kind: 'browser',
    person: 'ada',
    ts_status: 'ok',
    properties: { price: 49.5, text: 'cut \ufffd here' },
    context: { library: { name: 'actionpulse-browser' }, url: `${bench.pages}/` },
  });
  expect(visit.network.seen.map(({ method }) => method)).toContain('OPTIONS');
  for (const seen of visit.network.posts()) {
    expect(seen).toMatchObject({ key: null, authorization: `Bearer ${bench.server.browserToken}`, status: 202 });
  }
  expect(await waiting(page)).toBe(0);
  expect(await said(page)).toEqual([]);
});

test('an item that the server rejects is said and not sent again, its neighbours are stored', async () => {
  const page = await visit.open({ flushInterval: 60_000 });
  await flush(page);
  await track(page, 'neighbour');
  const id = await track(page, 'bad', { text: 'nul \0' });
  await track(page, 'neighbour');
  await flush(page);
  await flush(page);
  const rejection = { index: 1, eventId: id, code: 'invalid_properties' };
  expect(await said(page)).toMatchObject([['warn', [expect.anything(), rejection]], ['rejected', rejection]]);
  expect(visit.network.posts()).toHaveLength(1);
  expect(await bench.stored({ neighbour: 2 })).toEqual({ neighbour: 2 });
});

test('the answer is lost and the page reloaded: the same events go again and are stored once', async () => {
  const page = await visit.open();
  visit.network.faults = ['lose'];
  const id = await track(page, 'reloaded');
  await visit.network.until('the first attempt', () => visit.network.posts()[0]?.answer !== undefined);
  await page.reload();
  await visit.network.until('the second attempt', () => visit.network.posts()[1]?.answer !== undefined);
  const [first, second] = visit.network.posts();
  expect(items(first)).toMatchObject([{ event_id: id }]);
  expect(items(second)).toEqual(items(first));
  expect(answer(first)).toMatchObject({ accepted: 1, duplicates: 0 });
  expect(answer(second)).toMatchObject({ accepted: 1, duplicates: 1 });
  expect(await bench.stored({ reloaded: 1 })).toEqual({ reloaded: 1 });
});

test('a page that is reloaded while a request is under way', async () => {
  const page = await visit.open();
  for (let i = 0; i < 5; i++) {
    await track(page, 'under_way', { i });
    void flush(page).catch(() => undefined);
    await page.reload();
  }
  await flush(page);
  await visit.network.until('all answers', () => visit.network.concurrent === 0);
  expect(await bench.stored({ under_way: 5 })).toEqual({ under_way: 5 });
  const ids = (await bench.server.events('under_way')).map(({ event_id }) => event_id);
  expect(new Set(ids).size).toBe(5);
  expect(await waiting(page)).toBe(0);
});

test('two tabs: one request at a time, everything once', async () => {
  const tabs = [await visit.open({ maxBatchEvents: 3 }), await visit.open({ maxBatchEvents: 3 })];
  visit.network.faults = ['pass', 'lose', 'pass', 'lose'];
  await Promise.all(
    tabs.map((tab, i) =>
      tab.evaluate(async (n) => {
        for (let j = 0; j < 15; j++) {
          client.track('tabs', { n, j });
          if (j % 5 === 0) void client.flush();
        }
        await client.flush();
      }, i),
    ),
  );
  expect(await bench.stored({ tabs: 30 })).toEqual({ tabs: 30 });
  await visit.network.until('the repeats', () => visit.network.posts().filter((seen) => Number(answer(seen)['duplicates']) > 0).length === 2);
  expect(visit.network.mostConcurrent).toBe(1);
  const [one, two] = await Promise.all(tabs.map((tab) => tab.evaluate(() => [client.anonId(), client.sessionId()])));
  expect(one).toEqual(two);
});

test('a tab that is closed leaves its events to the other', async () => {
  const [closed, open] = [await visit.open({ flushInterval: 60_000 }), await visit.open()];
  await flush(closed);
  await track(closed, 'left_behind');
  expect(await waiting(closed)).toBe(1);
  await closed.close();
  await flush(open);
  expect(await bench.stored({ left_behind: 1 })).toEqual({ left_behind: 1 });
});

test('offline: events wait, and are sent when the network is back', async () => {
  const page = await visit.open();
  // The store is open afterwards; until then a row is in memory alone.
  await flush(page);
  await visit.context.setOffline(true);
  const id = await track(page, 'offline');
  await flush(page);
  expect(await waiting(page)).toBe(1);
  expect(visit.network.posts()).toEqual([]);
  await visit.context.setOffline(false);
  await visit.network.until('the request', () => visit.network.posts()[0]?.answer !== undefined);
  expect(items(visit.network.posts()[0])).toMatchObject([{ event_id: id }]);
  expect(await bench.stored({ offline: 1 })).toEqual({ offline: 1 });
});

test('requests that are blocked: the page stops, says so once and keeps its events for the next', async () => {
  let attempts = 0;
  await visit.context.route(`${visit.network.url}/**`, (route) => {
    attempts++;
    return route.abort('blockedbyclient');
  });
  const page = await visit.context.newPage();
  const start = Date.now();
  await page.clock.setFixedTime(start);
  await page.goto(visit.address());
  await track(page, 'blocked');
  for (let i = 1; i <= 8; i++) {
    await flush(page);
    // No delay is longer than this. While a request is under way the clock stands still.
    await page.clock.setFixedTime(start + i * 40_000);
  }
  expect(attempts).toBe(5);
  expect((await said(page)).filter(([, value]) => JSON.stringify(value).includes('blocked'))).toHaveLength(1);
  expect(await waiting(page)).toBe(1);
  await visit.context.unroute(`${visit.network.url}/**`);
  const next = await visit.open();
  await next.evaluate(() => localStorage.removeItem('actionpulse:default:pause'));
  await flush(next);
  expect(await bench.stored({ blocked: 1 })).toEqual({ blocked: 1 });
});

test('Retry-After can be read over CORS and is kept', async () => {
  const page = await visit.open();
  visit.network.faults = [
    { status: 429, headers: { 'Retry-After': '2' }, body: '{"error": {"code": "rate_limited", "message": "", "details": {}}}' },
  ];
  await track(page, 'limited');
  await visit.network.until('both attempts', () => visit.network.posts().length === 2);
  const [first, second] = visit.network.posts();
  const waited = (second?.at ?? 0) - (first?.at ?? 0);
  expect(waited).toBeGreaterThanOrEqual(2_000);
  expect(waited).toBeLessThan(5_000);
});

test('a page that is left sends a beacon without preflight; the next visit sends the same again', async () => {
  const page = await visit.open({ flushInterval: 60_000 });
  await flush(page);
  const id = await track(page, 'left', { text: 'x'.repeat(100) });
  await page.goto(`${bench.pages}/other`);
  await visit.network.until('the beacon', () => visit.network.posts()[0]?.answer !== undefined);
  const [beacon] = visit.network.seen;
  expect(beacon).toMatchObject({ method: 'POST', key: bench.server.browserToken, authorization: undefined, status: 202 });
  expect(beacon?.contentType).toMatch(/^text\/plain/);
  expect(items(beacon)).toMatchObject([{ event_id: id }]);
  await visit.open();
  await visit.network.until('the fetch', () => visit.network.posts()[1]?.answer !== undefined);
  expect(items(visit.network.posts()[1])).toEqual(items(beacon));
  expect(answer(visit.network.posts()[1])).toMatchObject({ accepted: 1, duplicates: 1 });
  expect(await bench.stored({ left: 1 })).toEqual({ left: 1 });
});

test('70 KiB when the page is left: 64 as a beacon, all of it by the next visit, nothing twice', async () => {
  const page = await visit.open({ flushInterval: 60_000 });
  await flush(page);
  await page.evaluate(() => {
    for (let i = 0; i < 7; i++) client.track('large', { text: 'x'.repeat(10_000) });
  });
  expect(await waiting(page)).toBe(7);
  await page.goto(`${bench.pages}/other`);
  await visit.network.until('the beacon', () => visit.network.posts()[0]?.answer !== undefined);
  expect(items(visit.network.posts()[0])).toHaveLength(6);
  await visit.open();
  await visit.network.until('the fetch', () => visit.network.posts()[1]?.answer !== undefined);
  expect(answer(visit.network.posts()[1])).toMatchObject({ accepted: 7, duplicates: 6 });
  expect(await bench.stored({ large: 7 })).toEqual({ large: 7 });
});

test('opting out: nothing leaves, nothing stays', async () => {
  const page = await visit.open({ flushInterval: 60_000 });
  const other = await visit.open({ flushInterval: 60_000 });
  for (const tab of [page, other]) await flush(tab);
  await track(page, 'opted_out');
  expect(await waiting(page)).toBe(1);
  await page.evaluate(() => client.optOut());
  await track(other, 'opted_out');
  for (const tab of [page, other]) await flush(tab);
  expect(await waiting(page)).toBe(0);
  await other.reload();
  await track(other, 'opted_out');
  await flush(other);
  await page.goto(`${bench.pages}/other`);
  expect(await page.evaluate(() => Object.keys(localStorage))).toEqual(['actionpulse:default:consent']);
  expect(visit.network.posts().flatMap(items).filter(({ event }) => event === 'opted_out')).toEqual([]);
});

test('consent that is given later: only then anything is stored or sent', async () => {
  const page = await visit.open({ consent: 'pending' });
  const id = await track(page, 'consented');
  await flush(page);
  expect(await page.evaluate(async () => [Object.keys(localStorage), await indexedDB.databases()])).toEqual([[], []]);
  expect(visit.network.seen).toEqual([]);
  await page.evaluate(() => client.optIn());
  await visit.network.until('the request', () => visit.network.posts()[0]?.answer !== undefined);
  expect(items(visit.network.posts()[0])).toMatchObject([{ event_id: id }]);
});

test('the script for script tags carries out what was called before it was loaded', async () => {
  const page = await visit.open({}, '/script');
  const { id, ts, name } = await page.evaluate(() => early);
  await page.waitForFunction(() => 'flush' in actionpulse);
  await page.evaluate(() => {
    actionpulse.track('script_late');
    return actionpulse.flush();
  });
  expect(await bench.stored({ [name]: 1, script_late: 1 })).toEqual({ [name]: 1, script_late: 1 });
  expect(await bench.server.events(name)).toMatchObject([{ event_id: id, ts, properties: { item: 'lamp' } }]);
});

const types = ({ events }: StoredChunk): number[] => events.map(({ type }) => type);
const numbers = (): number[] => visit.network.posts('/v1/replay').map(({ body }) => JSON.parse(body).chunk);

test('replay: rrweb is loaded when it starts, inputs are masked, numbers outlive the page', async () => {
  const page = await visit.open();
  const loaded = (): Promise<boolean> =>
    page.evaluate(() => performance.getEntriesByType('resource').some(({ name }) => name.includes('rrweb')));
  expect(await loaded()).toBe(false);
  visit.network.faults = ['lose'];
  await page.evaluate(() => startReplay({ chunkInterval: 60_000 }).then((replay) => replay.flush()));
  expect(await loaded()).toBe(true);
  await visit.network.until('the first attempt', () => visit.network.posts('/v1/replay')[0]?.answer !== undefined);
  await page.reload();
  await page.evaluate(() => startReplay({ chunkInterval: 60_000 }));
  await page.fill('#card', '4242 4242');
  await visit.network.until('the repeat', () => visit.network.posts('/v1/replay')[1]?.answer !== undefined);
  await page.evaluate(() => startReplay().then((replay) => replay.flush()));
  await visit.network.until('the second chunk', () => visit.network.chunks.length === 2);
  const [first, repeat] = visit.network.posts('/v1/replay');
  expect(repeat?.body).toBe(first?.body);
  expect(answer(repeat)).toEqual({ duplicate: true });
  expect(numbers()).toEqual([0, 0, 1]);
  expect(new Set(visit.network.chunks.map(({ session_id }) => session_id)).size).toBe(1);
  for (const chunk of visit.network.chunks) expect(types(chunk)).toContain(2);
  expect(types(visit.network.chunks[1] as StoredChunk)).toContain(3);
  for (const { session_id, chunk, text } of visit.network.chunks) {
    const events = await bench.server.chunk(session_id, chunk);
    expect(text).toContain(`"events":${events}`);
    expect(events).not.toContain('4242');
  }
});

test('replay: after a chunk that is lost the next holds the whole page', async () => {
  const page = await visit.open();
  await page.evaluate(() => startReplay({ chunkInterval: 200 }));
  await visit.network.until('the first chunk', () => visit.network.chunks.length === 1);
  visit.network.faults = [{ status: 422, headers: {}, body: '{"error": {"code": "validation_failed", "message": ""}}' }];
  await page.evaluate(() => document.querySelector('h1')?.append(' is open'));
  await visit.network.until('a chunk after it', () => visit.network.chunks.some(({ chunk }) => chunk === 2));
  expect(types(visit.network.chunks.find(({ chunk }) => chunk === 2) as StoredChunk)).toContain(2);
  expect(await said(page)).toMatchObject([['warn', expect.anything()], ['gaveUp', { reason: 'refused', code: 'validation_failed' }]]);
});

test('replay in two tabs: no number twice', async () => {
  const tabs = [await visit.open(), await visit.open()];
  for (const tab of tabs) await tab.evaluate(() => startReplay({ chunkInterval: 50 }));
  for (let i = 0; i < 3; i++) {
    for (const tab of tabs) await tab.evaluate(() => document.querySelector('h1')?.append(' more'));
    const before = visit.network.chunks.length;
    await visit.network.until('more chunks', () => visit.network.chunks.length > before);
  }
  expect(new Set(numbers()).size).toBe(numbers().length);
  expect(visit.network.posts('/v1/replay').map(answer).filter(({ duplicate }) => duplicate)).toEqual([]);
});

test('replay by script tags', async () => {
  const page = await visit.open({}, '/script');
  await page.waitForFunction(() => 'flush' in actionpulse);
  await page.evaluate(() => load('/dist/actionpulse-replay.min.js'));
  await page.evaluate(() => actionpulseReplay.start(actionpulse, { src: '/rrweb.umd.js' }).then((replay) => replay.flush()));
  await visit.network.until('the chunk', () => visit.network.chunks.length === 1);
  expect(types(visit.network.chunks[0] as StoredChunk)).toContain(2);
});
