import { beforeEach, describe, expect, test, vi } from 'vitest';
import { accepted, FakePage, refusal, type Reply, type Request } from './page.js';

let page: FakePage;
beforeEach(() => {
  page = new FakePage();
});

const second = 1_000;
const hour = 3_600 * second;
const ids = (request: Request | undefined): string[] => request?.body.events.map((item) => item.event_id) ?? [];

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

  test('without Web Locks a tab that was asleep does not go on beside the one that has taken its place', async () => {
    Object.assign(navigator, { locks: undefined });
    let answer = (_: Response): void => undefined;
    page.replies = [() => new Promise((resolve) => (answer = resolve))];
    const client = page.client();
    client.track('a');
    await page.pass(6 * second);
    client.track('b');
    await page.pass();
    const lease = `${Date.now() + 5 * second} other`;
    localStorage.setItem('actionpulse:default:lease', lease);
    answer(accepted(page.requests[0] as Request));
    await page.pass(4 * second);
    expect(page.requests).toHaveLength(1);
    expect(localStorage.getItem('actionpulse:default:lease')).toBe(lease);
    await page.pass(4 * second);
    expect(page.items().map((item) => item.event)).toEqual(['a', 'b']);
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

/** Sets the clock without letting time pass. */
function setClock(to: number): void {
  vi.setSystemTime(to);
}
