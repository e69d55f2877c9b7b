import { beforeEach, expect, test, vi } from 'vitest';
import type { Client, Options } from '../../src/index.js';
import { type Replay, type ReplayOptions, startReplay } from '../../src/replay/index.js';
import { openChunkStore } from '../../src/replay/chunk.js';
import { FakePage, json, refusal, type Reply } from './page.js';
import { type Event, FakeRrweb } from './rrweb.js';

interface Chunk {
  session_id: string;
  chunk: number;
  anon_id: string;
  user_id?: string;
  events: Event[];
}

const second = 1_000;
const stored: Reply = () => json(202, { duplicate: false });
const types = (chunk: Chunk | undefined): number[] => chunk?.events.map(({ type }) => type) ?? [];

let page: FakePage;
let rrweb: FakeRrweb;
beforeEach(() => {
  page = new FakePage();
  rrweb = new FakeRrweb();
  page.replies = Array.from({ length: 500 }, () => stored);
});

const chunks = (): Chunk[] =>
  page.requests.filter(({ path }) => path === '/v1/replay').map(({ body }) => body as unknown as Chunk);

async function record(options: ReplayOptions = {}, client?: Client, fake = rrweb): Promise<{ client: Client; replay: Replay }> {
  const made = client ?? page.client();
  const starting = startReplay(made, { load: () => Promise.resolve(fake), ...options });
  await page.pass();
  return { client: made, replay: await starting };
}

test('what was recorded is sent in numbered chunks, of the session and the visitor', async () => {
  const { client } = await record();
  client.identify('ada');
  await page.pass(10 * second);
  rrweb.click();
  await page.pass(10 * second);
  const { anon_id, session_id } = { anon_id: client.anonId(), session_id: client.sessionId() };
  expect(chunks()).toMatchObject([
    { chunk: 0, anon_id, session_id, user_id: 'ada' },
    { chunk: 1, anon_id, session_id, user_id: 'ada' },
  ]);
  expect(chunks().map(types)).toEqual([
    [5, 4, 2],
    [5, 3],
  ]);
});

test('inputs are masked and rrweb is loaded only once it is needed', async () => {
  const load = vi.fn(() => Promise.resolve(rrweb));
  const { client } = await record({ load, rrweb: { sampling: { scroll: 100 } } }, page.client({ consent: 'pending' }));
  expect(load).not.toHaveBeenCalled();
  client.optIn();
  await page.pass();
  expect(load).toHaveBeenCalledTimes(1);
  expect(rrweb.options).toMatchObject({ maskAllInputs: true, blockClass: 'ap-block', maskTextClass: 'ap-mask', sampling: { scroll: 100 } });
  expect((await record({}, client)).client).toBe(client);
  expect(load).toHaveBeenCalledTimes(1);
});

test('numbers and bytes are the same over attempts and reloads, and go on from there', async () => {
  page.replies = ['lost', refusal(500, 'internal'), stored, stored];
  await record();
  await page.pass(13 * second);
  page.load();
  await record();
  await page.pass(30 * second);
  const [first, second_, third, fourth] = chunks();
  expect([first, second_, third].map((chunk) => chunk?.chunk)).toEqual([0, 0, 0]);
  expect(second_).toEqual(first);
  expect(third).toEqual(first);
  expect(fourth).toMatchObject({ chunk: 1, session_id: first?.session_id });
  expect(types(fourth)).toEqual([5, 4, 2]);
});

test('two tabs of a session never use one number', async () => {
  const stores = [openChunkStore('s'), openChunkStore('s')];
  const made: number[] = [];
  const adding = Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      stores[i % 2]?.add({
        session: i % 4 < 2 ? 'one' : 'two',
        ts: Date.now(),
        size: 1,
        anchor: false,
        body: (number) => (made.push(number), `${number}`),
      }),
    ),
  );
  await page.idle(1_500);
  await adding;
  expect(made.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i >> 1));
});

test('each chunk says which tab it is of', async () => {
  const other = new FakeRrweb();
  await record();
  await record({}, page.client(), other);
  await page.pass(25 * second);
  const tabs = chunks().map(({ events }) => JSON.stringify(events[0]?.data));
  expect(chunks().map(({ chunk }) => chunk)).toEqual([0, 1]);
  expect(tabs[0]).toContain('actionpulse.chunk');
  expect(new Set(tabs).size).toBe(2);
});

test.each([
  ['refused', [refusal(422, 'validation_failed'), stored, stored], { reason: 'refused', code: 'validation_failed' }],
  ['too large for the server', [refusal(413, 'payload_too_large'), stored, stored], { reason: 'refused', code: 'payload_too_large' }],
])('after a chunk that is %s the next holds the whole page', async (_name, replies: Reply[], gaveUp) => {
  const { client } = await record();
  await page.pass(11 * second);
  page.replies = replies;
  rrweb.change();
  await page.pass(11 * second);
  expect(rrweb.snapshots).toBe(2);
  await page.pass(11 * second);
  expect(chunks().map(({ chunk }) => chunk)).toEqual([0, 1, 2]);
  expect(types(chunks()[2])).toEqual([5, 4, 2]);
  expect(page.gaveUp).toEqual([{ ...gaveUp, ids: [`${client.sessionId()}/1`] }]);
  rrweb.change();
  await page.pass(11 * second);
  expect(rrweb.snapshots).toBe(2);
});

test('after a chunk that has become too old, too, and it is not sent', async () => {
  await record();
  await page.pass(11 * second);
  page.online = false;
  rrweb.click();
  await page.pass(11 * second);
  vi.setSystemTime(Date.now() + 47.1 * 3_600 * second);
  page.online = true;
  page.fire('online');
  await page.pass(second);
  expect(chunks()).toHaveLength(1);
  expect(page.gaveUp).toMatchObject([{ reason: 'too_old' }]);
});

test('what is kept is bounded: the oldest chunks are given up, and the whole page follows', async () => {
  await record({ chunkBytes: 10_000, maxBufferBytes: 60_000 });
  await page.pass(11 * second);
  page.online = false;
  for (let i = 0; i < 8; i++) {
    rrweb.change('x'.repeat(10_000));
    await page.pass();
  }
  expect(rrweb.snapshots).toBeGreaterThan(1);
  expect(page.gaveUp.every(({ reason }) => reason === 'overflow')).toBe(true);
  page.online = true;
  page.fire('online');
  await page.pass(15 * second);
  const numbers = chunks().map(({ chunk }) => chunk);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  const lost = page.gaveUp.flatMap(({ ids }) => ids).map((id) => Number(id.split('/')[1]));
  expect(lost.length).toBeGreaterThan(0);
  expect(numbers.filter((number) => lost.includes(number))).toEqual([]);
  const after = chunks().filter(({ chunk }) => chunk > Math.max(...lost));
  expect(after.some((chunk) => types(chunk).includes(2))).toBe(true);
});

test('a loss in one tab has the other tabs of the session begin anew', async () => {
  const other = new FakeRrweb();
  await record();
  await record({}, page.client(), other);
  await page.pass(25 * second);
  page.replies = [refusal(422, 'validation_failed'), ...page.replies];
  rrweb.change();
  await page.pass(11 * second);
  other.change();
  rrweb.change();
  await page.pass(11 * second);
  expect([rrweb.snapshots, other.snapshots]).toEqual([2, 2]);
});

test('a number that other content has taken: another session, with the whole page', async () => {
  const { client } = await record();
  await page.pass(11 * second);
  const session = client.sessionId();
  page.replies = [json(202, { duplicate: true, conflict: true }), stored, stored];
  rrweb.change();
  await page.pass(11 * second);
  rrweb.change();
  await page.pass(11 * second);
  expect(chunks().map(({ chunk }) => chunk)).toEqual([0, 1, 0]);
  expect(chunks()[2]?.session_id).not.toBe(session);
  expect(types(chunks()[2])).toContain(2);
  expect(page.warned('same number')).toBe(1);
});

test('a repeat is a success', async () => {
  page.replies = ['lost', json(202, { duplicate: true }), stored];
  await record();
  await page.pass(60 * second);
  expect(chunks().map(({ chunk }) => chunk)).toEqual([0, 0]);
  expect(rrweb.snapshots).toBe(1);
  expect(page.warnings).toEqual([]);
});

test('an answer that does not say whether it was a repeat is no answer', async () => {
  page.replies = [json(202, {}), stored];
  await record();
  await page.pass(20 * second);
  expect(chunks().map(({ chunk }) => chunk)).toEqual([0, 0]);
});

test('a page that is refused again and again, or too large, is recorded no more', async () => {
  page.replies = Array.from({ length: 20 }, () => refusal(413, 'payload_too_large'));
  const { replay } = await record();
  await page.pass(120 * second);
  expect(chunks()).toHaveLength(2);
  expect(replay.recording()).toBe(false);
  expect(page.warned('recording has stopped')).toBe(1);

  rrweb = new FakeRrweb();
  rrweb.size = 6 << 20;
  const large = await record({}, page.client({ name: 'large' }), rrweb);
  expect(large.replay.recording()).toBe(false);
});

test('a chunk is made when there is enough, within 5 MiB, and when the page is hidden', async () => {
  await record({ chunkBytes: 4 << 20 });
  rrweb.change('x'.repeat(3 << 20));
  rrweb.change('y'.repeat(3 << 20));
  page.hide();
  await page.pass(second);
  expect(chunks().map(types)).toEqual([
    [5, 4, 2, 3],
    [5, 3],
  ]);
  expect(Math.max(...chunks().map((chunk) => JSON.stringify(chunk).length))).toBeLessThan(5 << 20);
});

test('a session that has ended is followed by another, which begins with the whole page', async () => {
  await record();
  await page.pass(11 * second);
  vi.setSystemTime(Date.now() + 31 * 60 * second);
  rrweb.change();
  await page.pass(11 * second);
  expect(chunks().map(({ chunk }) => chunk)).toEqual([0, 0]);
  expect(new Set(chunks().map(({ session_id }) => session_id)).size).toBe(2);
  expect(types(chunks()[1])).toContain(2);
});

test('only what the visitor does keeps a session alive', async () => {
  const { client } = await record();
  const session = client.sessionId();
  for (let i = 0; i < 3; i++) {
    vi.setSystemTime(Date.now() + 20 * 60 * second);
    rrweb.click();
  }
  expect(client.sessionId()).toBe(session);
  for (let i = 0; i < 3; i++) {
    vi.setSystemTime(Date.now() + 20 * 60 * second);
    rrweb.change();
  }
  expect(client.sessionId()).not.toBe(session);
});

test('opting out stops recording and removes what was not sent', async () => {
  page.online = false;
  const { client, replay } = await record();
  await page.pass(11 * second);
  client.optOut();
  rrweb.change();
  await page.pass(11 * second);
  expect(replay.recording()).toBe(false);
  page.online = true;
  client.optIn();
  await page.pass(11 * second);
  expect(replay.recording()).toBe(true);
  expect(chunks().map(({ chunk }) => chunk)).toEqual([0]);
});

test.each<[string, Partial<Options>, ReplayOptions]>([
  ['rrweb does not load', {}, { load: () => Promise.reject(new Error('blocked')) }],
  ['IndexedDB cannot be used', {}, {}],
])('when %s, that is said and nothing breaks', async (name, options, replayOptions) => {
  if (name.startsWith('IndexedDB')) vi.stubGlobal('indexedDB', undefined);
  const { client, replay } = await record(replayOptions, page.client(options));
  await page.pass(11 * second);
  expect(replay.recording()).toBe(false);
  expect(page.warned('recording has stopped')).toBe(1);
  client.track('a');
  page.replies = [];
  await page.pass(6 * second);
  expect(page.items().map((item) => item.event)).toEqual(['a']);
});

test('a server that does not know replay gets events all the same', async () => {
  page.replies = [refusal(404, 'not_found')];
  const { client } = await record();
  await page.pass(11 * second);
  rrweb.change();
  client.track('a');
  await page.pass(11 * second);
  expect(chunks()).toHaveLength(1);
  expect(page.items().map((item) => item.event)).toEqual(['a']);
  expect(page.warned('refused')).toBe(1);
});

test('stop sends what there is, and records no more', async () => {
  const { replay } = await record();
  const stopping = replay.stop();
  await page.pass(second);
  await stopping;
  rrweb.change();
  await page.pass(30 * second);
  expect(chunks().map(types)).toEqual([[5, 4, 2]]);
});
