import { beforeEach, describe, expect, test, vi } from 'vitest';
import { accepted, FakePage, json, refusal, type Reply, type Request } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const hour = 3_600 * second;
const ids = (request: Request | undefined): string[] => request?.body.events.map((item) => item.event_id) ?? [];

describe('an event', () => {
  test('has its id, time, visitor and session from the moment of the fact on, over attempts and reloads', async () => {
    page.replies = [refusal(500, 'internal'), 'lost'];
    const client = page.client();
    const id = client.track('bought', { price: 3 });
    const at = Date.now();
    await page.pass(7 * second);
    client.reset();
    page.load();
    page.client();
    await page.pass(10 * second);

    const items = page.items();
    expect(page.requests).toHaveLength(3);
    expect(items[0]).toMatchObject({ event_id: id, ts: at, event: 'bought', properties: { price: 3 } });
    expect(items[1]).toEqual(items[0]);
    expect(items[2]).toEqual(items[0]);
    const sentAt = page.requests.map(({ body }) => body.sent_at);
    expect(sentAt).toEqual(page.requests.map((request) => request.at));
    expect(new Set(sentAt).size).toBe(3);
  });

  test('is sent with the key in a header and says where it happened, without query and fragment', async () => {
    const client = page.client({ context: () => ({ build: 7 }) });
    client.track('viewed');
    await client.flush();
    expect(page.requests[0]?.headers).toEqual({ Authorization: 'Bearer apb_test', 'Content-Type': 'application/json' });
    expect(page.items()[0]?.context).toEqual({
      library: { name: 'actionpulse-browser', version: '0.1.0' },
      url: 'https://shop.example/cart',
      referrer: 'https://search.example/',
      build: 7,
    });
  });

  test('waits for others, and not when there are enough', async () => {
    const client = page.client({ flushAt: 3 });
    await page.pass();
    client.track('a');
    await page.pass(4_900);
    expect(page.requests).toHaveLength(0);
    await page.pass(200);
    expect(page.requests).toHaveLength(1);
    for (const name of ['b', 'c', 'd']) client.track(name);
    await page.pass();
    expect(page.requests.map(({ body }) => body.events.map((item) => item.event))).toEqual([['a'], ['b', 'c', 'd']]);
  });

  test('that is no JSON or is too large is refused at once, and harms no other', async () => {
    const client = page.client();
    expect(client.track('cycle', { n: 1n })).toBe('');
    expect(client.track('huge', { text: 'x'.repeat(64 << 10) })).toBe('');
    client.track('fine');
    await client.flush();
    expect(page.items().map((item) => item.event)).toEqual(['fine']);
    expect(page.gaveUp).toMatchObject([{ reason: 'refused', code: 'event_too_large' }]);
    expect(page.warnings).toHaveLength(2);
  });

  test('order is that of the facts, over tabs', async () => {
    const [one, two] = [page.client(), page.client()];
    for (const name of ['a', 'b', 'c', 'd']) {
      (name < 'c' ? one : two).track(name);
      await page.pass(1);
    }
    await page.pass(6 * second);
    expect(page.items().map((item) => item.event)).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('a 202', () => {
  test('with rejected items: each is logged with index, code and id, called back and not sent again', async () => {
    page.replies = [(request) => accepted(request, [{ index: 1, event_id: 'x', code: 'invalid_properties', message: 'm' }])];
    const client = page.client();
    client.track('a');
    const id = client.track('b');
    await client.flush();
    await page.pass(60 * second);
    expect(page.requests).toHaveLength(1);
    expect(page.rejected).toMatchObject([{ index: 1, eventId: id, code: 'invalid_properties', message: 'm' }]);
    expect(page.warnings).toMatchObject([[expect.anything(), { index: 1, eventId: id, code: 'invalid_properties' }]]);
    expect(page.gaveUp).toEqual([]);
  });

  test.each([
    ['too few items', json(202, { accepted: 1, duplicates: 0, rejected: [] })],
    ['a page of a portal', new Response('<html>', { status: 200 })],
    ['nothing', new Response(null, { status: 204 })],
  ])('that accounts for %s is no answer: the whole batch goes again', async (_name, reply) => {
    page.replies = [reply];
    const client = page.client();
    client.track('a');
    client.track('b');
    await client.flush();
    await page.pass(2 * second);
    expect(page.requests).toHaveLength(2);
    expect(ids(page.requests[1])).toEqual(ids(page.requests[0]));
  });

  test('a callback that throws stops nothing', async () => {
    page.replies = [(request) => accepted(request, [{ index: 0, event_id: null, code: 'invalid_event', message: '' }])];
    const thrown: unknown[] = [];
    process.once('unhandledRejection', (error) => thrown.push(error));
    const client = page.client({
      onRejected: () => {
        throw new Error('theirs');
      },
      context: () => {
        throw new Error('theirs too');
      },
    });
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    await page.pass();
    expect(page.items().map((item) => item.event)).toEqual(['a', 'b']);
    expect(thrown).toEqual([new Error('theirs')]);
  });
});

describe('delays', () => {
  const times = (): number[] => page.requests.map(({ at }, i) => at - (page.requests[i - 1]?.at ?? at)).slice(1);
  const fail = (n: number, reply: () => Reply = () => refusal(500, 'internal')): Reply[] => Array.from({ length: n }, reply);

  test('grow from a second to 30, each up to a quarter longer or shorter', async () => {
    page.replies = fail(8);
    page.client().track('a');
    await page.pass(180 * second);
    expect(page.requests).toHaveLength(9);
    times().forEach((wait, i) => {
      const middle = Math.min(30, 2 ** i) * second;
      expect(wait).toBeGreaterThanOrEqual(middle * 0.75);
      expect(wait).toBeLessThanOrEqual(middle * 1.25 + 60);
    });
    expect(new Set(times().map((wait, i) => wait / Math.min(30, 2 ** i))).size).toBeGreaterThan(4);
  });

  test.each([
    ['seconds', '120'],
    ['a date', 'Fri, 01 May 2026 10:02:00 GMT'],
  ])('Retry-After as %s is kept exactly, by a reload and by another tab, too', async (_name, header) => {
    page.replies = [refusal(429, 'rate_limited', { 'Retry-After': header })];
    page.client().track('a');
    await page.pass(5 * second);
    const due = (page.requests[0]?.at ?? 0) + 120 * second;
    page.client().track('b');
    await page.pass(20 * second);
    page.load();
    const reloaded = page.client();
    void reloaded.flush();
    page.fire('online');
    await page.pass(due - Date.now() - 60);
    expect(page.requests).toHaveLength(1);
    await page.pass(120);
    expect(page.requests).toHaveLength(2);
    expect(page.requests[1]?.at).toBeGreaterThanOrEqual(due);
  });

  test('a clock that is set back does not make the wait longer', async () => {
    page.replies = [refusal(429, 'rate_limited', { 'Retry-After': '60' })];
    const client = page.client();
    client.track('a');
    await client.flush();
    setClock(Date.now() - 48 * hour);
    await page.pass(61 * second);
    void client.flush();
    await page.pass(61 * second);
    expect(page.requests).toHaveLength(2);
  });

  test('attempts are bounded; then events are kept, that is said, and a rest follows', async () => {
    page.replies = fail(4);
    page.client({ maxAttempts: 3, restInterval: 600 * second }).track('a');
    await page.pass(60 * second);
    expect(page.requests).toHaveLength(3);
    expect(page.warned('3 attempts failed')).toBe(1);
    await page.pass(550 * second);
    expect(page.requests).toHaveLength(5);
    expect(ids(page.requests[4])).toEqual(ids(page.requests[0]));
    expect(page.gaveUp).toEqual([]);
  });

  test.each([
    ['the network comes back', () => page.fire('online')],
    ['a page is loaded', () => (page.load(), void page.client())],
  ])('a rest ends when %s', async (_name, wake) => {
    page.replies = fail(3);
    page.client({ maxAttempts: 3 }).track('a');
    await page.pass(60 * second);
    wake();
    await page.pass();
    expect(page.requests).toHaveLength(4);
  });

  test('after a failure one request is under way over all tabs, and the delay is shared', async () => {
    page.replies = fail(3, () => 'lost');
    const tabs = [page.client(), page.client(), page.client()];
    tabs.forEach((tab, i) => tab.track(`tab ${i}`));
    await page.pass(700);
    expect(page.requests).toHaveLength(1);
    await page.pass(60 * second);
    expect(page.mostConcurrent).toBe(1);
    expect(page.requests).toHaveLength(4);
    expect(times()[1]).toBeGreaterThanOrEqual(1_500);
    expect(times()[2]).toBeGreaterThanOrEqual(3_000);
    expect(ids(page.requests[3])).toHaveLength(3);
  });

  test('without Web Locks too, also when a tab was closed in the middle', async () => {
    Object.assign(navigator, { locks: undefined });
    page.replies = [() => new Promise(() => undefined)];
    page.client({ requestTimeout: 4 * second }).track('a');
    await page.pass();
    const other = page.client();
    other.track('b');
    await page.pass(3 * second);
    expect(page.requests).toHaveLength(1);
    await page.pass(6 * second);
    expect(page.mostConcurrent).toBe(1);
    expect(new Set(page.items().map((item) => item.event))).toEqual(new Set(['a', 'b']));
    localStorage.setItem('actionpulse:default:lease', `${Date.now() + 8 * second} closed`);
    other.track('c');
    await page.pass(7 * second);
    expect(page.items().map((item) => item.event)).not.toContain('c');
    await page.pass(2 * second);
    expect(page.items().map((item) => item.event)).toContain('c');
  });

  test('an answer that does not come is given up after a while, and the events go again', async () => {
    page.replies = [() => new Promise(() => undefined)];
    page.client().track('a');
    await page.pass(29 * second);
    expect(page.requests).toHaveLength(1);
    await page.pass(3 * second);
    expect(page.requests).toHaveLength(2);
  });
});

describe('refusals', () => {
  test.each([
    [401, 'unauthenticated'],
    [402, 'payment_required'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [405, 'method_not_allowed'],
    [409, 'conflict'],
    [415, 'unsupported_media_type'],
    [429, 'quota_exceeded'],
    [429, 'trial_quota_exceeded'],
  ])('%i %s: nothing more is sent by this page, events are kept for the next', async (status, code) => {
    page.replies = [refusal(status, code)];
    const client = page.client();
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    page.fire('online');
    page.hide();
    await page.pass(2 * hour);
    expect(page.requests).toHaveLength(1);
    expect(page.beacons).toEqual([]);
    expect(page.gaveUp).toEqual([]);
    expect(page.warnings).toMatchObject([[expect.stringContaining('refused'), code]]);
    page.load();
    await page.client().flush();
    expect(page.items().map((item) => item.event)).toEqual(['a', 'a', 'b']);
  });

  test.each([
    [400, 'invalid_json'],
    [422, 'validation_failed'],
  ])('%i %s would be said again: the batch is given up aloud, the next goes on', async (status, code) => {
    page.replies = [refusal(status, code)];
    const client = page.client();
    const id = client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    expect(page.items().map((item) => item.event)).toEqual(['a', 'b']);
    expect(page.gaveUp).toEqual([{ reason: 'refused', ids: [id], code }]);
    expect(page.warned('given up')).toBe(1);
  });

  test('413: half of the events, then more again', async () => {
    const most = 3;
    const small: Reply = (request) => (request.body.events.length > most ? refusal(413, 'payload_too_large') : accepted(request));
    page.replies = Array.from({ length: 20 }, () => small);
    const client = page.client({ flushAt: 100 });
    for (let i = 0; i < 12; i++) client.track(`e${i}`);
    await client.flush();
    expect(page.requests.map(({ body }) => body.events.length)).toEqual([12, 6, 3, 6, 3, 6, 3, 3]);
    expect(page.gaveUp).toEqual([]);
    page.replies = [];
    for (let i = 0; i < 12; i++) client.track(`e${i}`);
    await client.flush();
    expect(page.requests.slice(8).map(({ body }) => body.events.length)).toEqual([12]);
  });

  test('413 for a single event: it is given up aloud', async () => {
    page.replies = [refusal(413, 'payload_too_large')];
    const client = page.client();
    client.track('a');
    await client.flush();
    client.track('b');
    await client.flush();
    expect(page.items().map((item) => item.event)).toEqual(['a', 'b']);
    expect(page.gaveUp).toMatchObject([{ reason: 'refused', code: 'payload_too_large' }]);
  });

  test('409 privacy_job_active is repeated', async () => {
    page.replies = [refusal(409, 'privacy_job_active', {}, { retryable: true })];
    page.client().track('a');
    await page.pass(8 * second);
    expect(page.requests).toHaveLength(2);
  });

  test('X-Should-Retry: false is obeyed', async () => {
    page.replies = [refusal(500, 'internal', { 'X-Should-Retry': 'false' })];
    page.client().track('a');
    await page.pass(hour);
    expect(page.requests).toHaveLength(1);
  });
});

describe('a network that lets nothing through', () => {
  const blocked = (n: number): Reply[] => Array.from({ length: n }, () => 'lost' as const);

  test('after five attempts that failed at once the page stops, says so once, and keeps its events', async () => {
    page.replies = blocked(50);
    const client = page.client();
    client.track('a');
    await page.pass(60 * second);
    client.track('b');
    void client.flush();
    page.hide();
    await page.pass(2 * hour);
    expect(page.requests).toHaveLength(5);
    expect(page.beacons).toEqual([]);
    expect(page.warned('blocked')).toBe(1);
    page.replies = [];
    page.load();
    page.client();
    await page.pass(40 * second);
    expect(page.items().slice(5).map((item) => item.event)).toEqual(['a', 'b']);
  });

  test('is not what a server is that has answered once', async () => {
    const client = page.client();
    client.track('a');
    await client.flush();
    page.replies = blocked(7);
    client.track('b');
    await page.pass(200 * second);
    expect(page.requests).toHaveLength(9);
    expect(page.warned('blocked')).toBe(0);
  });

  test('offline: nothing is tried, and what waits is sent when the network is back', async () => {
    page.online = false;
    const client = page.client();
    client.track('a');
    void client.flush();
    await page.pass(hour);
    expect(page.requests).toHaveLength(0);
    page.hide();
    expect(page.beacons).toEqual([]);
    page.online = true;
    page.fire('online');
    await page.pass();
    expect(page.items().map((item) => item.event)).toEqual(['a']);
  });
});

describe('the buffer', () => {
  test('gives up aloud what is older than 47 hours, and sends what is younger', async () => {
    page.online = false;
    const client = page.client();
    const old = client.track('old');
    await page.pass();
    setClock(Date.now() + hour);
    client.track('young');
    await page.pass();
    setClock(Date.now() + 46 * hour + second);
    page.online = true;
    page.fire('online');
    await page.pass();
    expect(page.items().map((item) => item.event)).toEqual(['young']);
    expect(page.gaveUp).toEqual([{ reason: 'too_old', ids: [old] }]);
    expect(page.warned('given up')).toBe(1);
  });

  test('an event that becomes too old between attempts does not go again, nor as a beacon', async () => {
    page.replies = [refusal(500, 'internal')];
    const client = page.client();
    client.track('a');
    await client.flush();
    setClock(Date.now() + 47 * hour + second);
    page.hide();
    await page.pass(5 * second);
    void client.flush();
    await page.pass();
    expect(page.requests).toHaveLength(1);
    expect(page.beacons).toEqual([]);
    expect(page.gaveUp).toMatchObject([{ reason: 'too_old' }]);
  });

  test.each([
    ['events', { maxBufferEvents: 60 }, 60],
    ['bytes', { maxBufferBytes: 30_000 }, 30_000 / 500],
  ])('is bounded in %s: the oldest are given up aloud', async (_name, options, most) => {
    page.online = false;
    const client = page.client(options);
    for (let i = 0; i < 200; i++) client.track(`e${i}`, { text: 'x'.repeat(100) });
    await page.idle(2_000);
    page.online = true;
    page.fire('online');
    await page.idle(2_000);
    const given = page.gaveUp.flatMap(({ ids }) => ids);
    expect(page.gaveUp.every(({ reason }) => reason === 'overflow')).toBe(true);
    const sent = page.items().map((item) => item.event);
    expect(sent.length + given.length).toBe(200);
    // The bound is enforced every 50 events.
    expect(sent.length).toBeLessThanOrEqual(most + 50);
    expect(sent.length).toBeGreaterThanOrEqual(most * 0.8);
    expect(sent[sent.length - 1]).toBe('e199');
    expect(sent).toEqual(Array.from({ length: sent.length }, (_, i) => `e${200 - sent.length + i}`));
  });

  test('requests are bounded in events and bytes', async () => {
    const client = page.client({ maxBatchEvents: 4, maxBatchBytes: 2_000, flushAt: 100 });
    for (const size of [1, 1, 1, 1, 1, 900, 900, 1800, 1]) client.track('e', { text: 'x'.repeat(size) });
    await client.flush();
    expect(page.requests.map(({ body }) => body.events.length)).toEqual([4, 2, 1, 1, 1]);
    for (const { body } of page.requests) expect(JSON.stringify(body.events).length).toBeLessThan(2_400);
  });
});

/** Sets the clock without letting time pass. */
function setClock(to: number): void {
  vi.setSystemTime(to);
}
