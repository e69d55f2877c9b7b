import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FakePage, refusal } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const hour = 3_600 * second;

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
