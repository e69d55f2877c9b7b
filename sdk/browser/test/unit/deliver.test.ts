import { beforeEach, describe, expect, test } from 'vitest';
import { accepted, FakePage, json, refusal, type Request } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
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
