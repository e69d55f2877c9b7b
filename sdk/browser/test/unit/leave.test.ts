import { beforeEach, describe, expect, test } from 'vitest';
import { FakePage, refusal } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const names = (): string[] => page.items().map((item) => item.event);

describe('a page that is hidden or closed', () => {
  const bodies = (): { event_id: string }[][] => page.beacons.map(({ body }) => JSON.parse(body).events);

  test('sends what waits as a beacon, with the key in the address, and later the same by fetch', async () => {
    const client = page.client();
    await page.pass();
    const id = client.track('a');
    page.hide();
    expect(page.beacons.map(({ url }) => url)).toEqual(['https://events.example/v1/track?key=apb_test']);
    expect(bodies()).toMatchObject([[{ event_id: id }]]);
    expect(JSON.parse(page.beacons[0]?.body ?? '').sent_at).toBe(Date.now());
    page.load();
    page.client();
    await page.pass(5 * second);
    expect(page.items()).toEqual(bodies()[0]);
  });

  test('sends each event as a beacon once', async () => {
    const client = page.client();
    await page.pass();
    client.track('a');
    page.hide();
    page.fire('pagehide');
    client.track('b');
    page.fire('pagehide');
    expect(bodies().map((events) => events.length)).toEqual([1, 1]);
  });

  test('keeps to 64 KiB; the rest stays in the outbox', async () => {
    const client = page.client({ flushAt: 100 });
    await page.pass();
    for (let i = 0; i < 10; i++) client.track(`e${i}`, { text: 'x'.repeat(10_000) });
    page.hide();
    expect(page.beacons).toHaveLength(1);
    expect(page.beacons[0]?.body.length).toBeLessThanOrEqual(64 * 1024);
    expect(bodies()[0]).toHaveLength(6);
    await client.flush();
    expect(names()).toHaveLength(10);
  });

  test('a text of other letters counts as the bytes that it has', async () => {
    const client = page.client({ flushAt: 100 });
    await page.pass();
    for (let i = 0; i < 10; i++) client.track('e', { text: 'ж'.repeat(5_000) });
    page.hide();
    expect(new TextEncoder().encode(page.beacons[0]?.body).length).toBeLessThanOrEqual(64 * 1024);
    expect(bodies()[0]).toHaveLength(6);
  });

  test('sends half when others use the budget, and nothing is lost when it is used up', async () => {
    const client = page.client();
    await page.pass();
    for (let i = 0; i < 4; i++) client.track(`e${i}`, { text: 'x'.repeat(10_000) });
    page.beaconBudget = 30_000;
    page.hide();
    expect(bodies().map((events) => events.length)).toEqual([2]);
    page.beaconBudget = 0;
    page.hide();
    await client.flush();
    expect(names()).toEqual(['e0', 'e1', 'e2', 'e3']);
  });

  test('sends none while a delay is to be kept', async () => {
    page.replies = [refusal(429, 'rate_limited', { 'Retry-After': '60' })];
    const client = page.client();
    client.track('a');
    await client.flush();
    page.hide();
    page.fire('pagehide');
    expect(page.beacons).toEqual([]);
  });
});

test('a request that fails because the page ends is no failure: the next page does not wait', async () => {
  page.replies = [() => new Promise(() => undefined)];
  const client = page.client({ requestTimeout: 100 });
  client.track('a');
  void client.flush();
  await page.pass();
  page.fire('pagehide');
  await page.pass(200);
  expect(localStorage.getItem('actionpulse:default:pause')).toBeNull();
  expect(page.requests).toHaveLength(1);
  // It came back from a cache instead.
  await page.pass(6 * second);
  expect(names()).toEqual(['a', 'a']);
});
