import { IDBFactory } from 'fake-indexeddb';
import { vi } from 'vitest';
import { type Client, createClient, type GaveUp, type Options, type Rejection } from '../../src/index.js';

/** A request as the server sees it. */
export interface Request {
  path: string;
  headers: Record<string, string>;
  keepalive: boolean;
  at: number;
  body: { sent_at?: number; events: Item[]; [name: string]: unknown };
}

export interface Item {
  event_id: string;
  event: string;
  ts: number;
  anon_id: string;
  user_id?: string;
  session_id: string;
  properties?: Record<string, unknown>;
  context: Record<string, unknown>;
}

/** What the server does with a request: an answer, or 'lost': there is none. */
export type Reply = Response | 'lost' | ((request: Request) => Response | 'lost' | Promise<Response | 'lost'>);

/** A 202 that accepts everything. */
export function accepted(request: Request, rejected: unknown[] = []): Response {
  if (request.path !== '/v1/track') return json(202, {});
  return json(202, { accepted: request.body.events.length - rejected.length, duplicates: 0, rejected });
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers });
}

/** An error in the server's envelope. */
export function refusal(status: number, code: string, headers: Record<string, string> = {}, details = {}): Response {
  return json(status, { error: { code, message: code, request_id: 'r', details } }, headers);
}

/** What the page stands on: storage outlives [FakePage.load], as it does in a browser. */
export class FakePage {
  readonly requests: Request[] = [];
  readonly beacons: { url: string; body: string }[] = [];
  readonly warnings: [message: string, detail: unknown][] = [];
  readonly rejected: Rejection[] = [];
  readonly gaveUp: GaveUp[] = [];
  readonly storage = new FakeStorage();
  /** Replies to come; after them everything is accepted. */
  replies: Reply[] = [];
  online = true;
  beaconBudget = 64 * 1024;
  concurrent = 0;
  mostConcurrent = 0;
  hidden = false;
  private events = new EventTarget();
  /** When timers are due. */
  private due: number[] = [];
  private locks = new FakeLocks();

  constructor() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: Date.parse('2026-05-01T10:00:00Z') });
    const setTimer = setTimeout;
    vi.stubGlobal('setTimeout', (work: () => void, ms: number) => {
      this.due.push(Date.now() + ms);
      return setTimer(work, ms);
    });
    vi.stubGlobal('indexedDB', new IDBFactory());
    vi.stubGlobal('localStorage', this.storage);
    vi.stubGlobal('location', { origin: 'https://shop.example', pathname: '/cart' });
    vi.stubGlobal('fetch', (url: string, init: RequestInit) => this.fetch(url, init));
    const page = this;
    vi.stubGlobal('navigator', {
      get onLine() {
        return page.online;
      },
      locks: this.locks,
      sendBeacon: (url: string, body: string) => this.beacon(url, body),
    });
    this.load();
  }

  /** A new page of the same browser: nothing in memory is left. */
  load(): void {
    this.events = new EventTarget();
    const { events } = this;
    const page = this;
    vi.stubGlobal('addEventListener', events.addEventListener.bind(events));
    vi.stubGlobal('document', {
      referrer: 'https://search.example/?q=secret#x',
      cookie: '',
      addEventListener: events.addEventListener.bind(events),
      get hidden() {
        return page.hidden;
      },
    });
  }

  client(options: Partial<Options> = {}): Client {
    return createClient({
      url: 'https://events.example/',
      key: 'apb_test',
      logger: { debug: () => undefined, warn: (...said) => void this.warnings.push(said as [string, unknown]) },
      onRejected: (rejection) => void this.rejected.push(rejection),
      onGaveUp: (gaveUp) => void this.gaveUp.push(gaveUp),
      ...options,
    });
  }

  /** Lets so many milliseconds pass, and everything happen that is due. */
  async pass(ms = 0): Promise<void> {
    const end = Date.now() + ms;
    await this.idle();
    while (Date.now() < end) {
      const now = Date.now();
      this.due = this.due.filter((at) => at > now);
      await vi.advanceTimersByTimeAsync(Math.min(end, ...this.due) - now);
      await this.idle();
    }
  }

  fire(name: string, members: Record<string, unknown> = {}): void {
    this.events.dispatchEvent(Object.assign(new Event(name), members));
  }

  hide(): void {
    this.hidden = true;
    this.fire('visibilitychange');
    this.hidden = false;
  }

  /** The items of all requests of track, in order. */
  items(): Item[] {
    return this.requests.filter(({ path }) => path === '/v1/track').flatMap(({ body }) => body.events);
  }

  warned(part: string): number {
    return this.warnings.filter(([message]) => message.includes(part)).length;
  }

  /** Lets everything happen that needs no time. */
  async idle(turns = 100): Promise<void> {
    for (let i = 0; i < turns; i++) {
      if (i % 10 === 0) await vi.advanceTimersByTimeAsync(0);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  private async fetch(url: string, init: RequestInit): Promise<Response> {
    const request: Request = {
      path: url.replace('https://events.example', ''),
      headers: init.headers as Record<string, string>,
      keepalive: init.keepalive ?? false,
      at: Date.now(),
      body: JSON.parse(String(init.body)),
    };
    this.requests.push(request);
    this.mostConcurrent = Math.max(this.mostConcurrent, ++this.concurrent);
    try {
      const reply = this.replies.shift() ?? accepted;
      const made = typeof reply === 'function' ? reply(request) : reply;
      const answer = await Promise.race([made, aborted(init.signal)]);
      if (answer === 'lost') throw new TypeError('Failed to fetch');
      return answer;
    } finally {
      this.concurrent--;
    }
  }

  private beacon(url: string, body: string): boolean {
    if (body.length > this.beaconBudget) return false;
    this.beaconBudget -= body.length;
    this.beacons.push({ url, body });
    return true;
  }
}

function aborted(signal: AbortSignal | null | undefined): Promise<'lost'> {
  return new Promise((resolve) => signal?.addEventListener('abort', () => resolve('lost')));
}

/** localStorage with a bound. */
export class FakeStorage {
  [name: string]: unknown;
  get length(): number {
    return Object.keys(this).length;
  }
  getItem(name: string): string | null {
    return name in this ? String(this[name]) : null;
  }
  setItem(name: string, value: string): void {
    this[name] = value;
  }
  removeItem(name: string): void {
    delete this[name];
  }
}

/** Web Locks: one holder of a name, the others in line. */
class FakeLocks {
  private last = Promise.resolve();

  request(_name: string, work: () => Promise<void>): Promise<void> {
    const mine = this.last.then(work);
    this.last = mine.catch(() => undefined);
    return mine;
  }
}
