import { fromJSON } from './json.js';
import type { Lock } from './lock.js';
import type { Settings } from './options.js';
import type { Pause } from './pause.js';
import { type Answer, backoff, judge, type Verdict } from './verdict.js';

/** One request, from its first attempt until it is settled. */
export interface Delivery {
  path: string;
  /** The body, written anew for each attempt. */
  body: () => string;
  /** Whether it may be sent again when it may have been carried out. */
  repeatable: boolean;
  /** Whether the request outlives the page. For small bodies only: all such bodies share 64 KiB. */
  keepalive?: boolean;
  /** Called with true before an attempt, and with false after one that has certainly done nothing. */
  mark?: (sent: boolean) => Promise<void>;
  /**
   * Takes the JSON of a 2xx. Returns false, and does nothing, if it does not
   * account for everything that was sent: then it was no answer.
   */
  settle: (body: unknown) => Promise<boolean>;
  /** Makes what is sent next smaller; false if that is not possible. */
  shrink?: () => boolean;
  /** Gives the contents up. */
  drop: (reason: 'refused' | 'outcome_unknown', code: string) => Promise<void>;
}

/** Where deliveries come from. */
export interface Source {
  /** Returns what is to be sent next, if anything. */
  next(): Promise<Delivery | undefined>;
}

/** Sends what the sources offer, one request at a time over all tabs. */
export interface Sender {
  /** Sends until nothing is left, or until it must wait. Never rejects. */
  flush(): Promise<void>;
  /** Whether requests do not fail. */
  healthy(): boolean;
  /** Forgets a request that is under way, whatever becomes of it, and sends nothing until flush is called. */
  leave(): void;
  /** The same, and cuts it. */
  abort(): void;
}

/** What a sender needs from outside. */
export interface SenderParams {
  settings: Settings;
  /** Those from which something may still be sent: one that the server refuses is removed. */
  sources: Source[];
  lock: Lock;
  pause: Pause;
  /** Whether anything may be sent. */
  allowed: () => boolean;
  /** Has flush called again in so many milliseconds. */
  later: (ms: number) => void;
}

/** Unanswered attempts that failed at once, after which requests are taken to be blocked. */
const blockedAfter = 5;
/** A request that is blocked fails within milliseconds; one that is lost takes longer. */
const atOnce = 1_000;

export function createSender({ settings, sources, lock, pause, allowed, later }: SenderParams): Sender {
  const { log } = settings;
  /** Where the present delivery comes from. */
  let current = 0;
  let answered = false;
  let failedAtOnce = 0;
  /** Cuts the present request, or the last one. */
  let underWay: AbortController | undefined;
  let left = false;
  let flushing: Promise<void> = Promise.resolve();

  const attempt = async (delivery: Delivery): Promise<Answer> => {
    const abort = (underWay = new AbortController());
    const timer = setTimeout(() => abort.abort(), settings.requestTimeout);
    try {
      const response = await fetch(settings.url + delivery.path, {
        method: 'POST',
        headers: { Authorization: 'Bearer ' + settings.key, 'Content-Type': 'application/json' },
        body: delivery.body(),
        credentials: 'omit',
        keepalive: !!delivery.keepalive,
        signal: abort.signal,
      });
      answered = true;
      return { status: response.status, headers: response.headers, body: fromJSON(await response.text()) };
    } catch {
      return { status: 0 };
    } finally {
      clearTimeout(timer);
    }
  };

  const wait = ({ code, wait: named }: Verdict): void => {
    const failures = pause.failures() + 1;
    const rest = failures >= settings.maxAttempts;
    // What the server has named is obeyed by the next page, too; a rest of our own is not.
    const growing = rest ? Math.max(named ?? 0, settings.restInterval) : named ?? backoff(failures, Math.random());
    pause.begin(growing, rest ? 0 : failures, rest && named === undefined);
    if (rest) log.warn(`${failures} attempts failed: events are kept`, code);
  };

  const act = async (delivery: Delivery, verdict: Verdict): Promise<void> => {
    const { action, code, unknown } = verdict;
    const again = action === 'repeat';
    if (again) wait(verdict);
    if (again && unknown && !delivery.repeatable) return delivery.drop('outcome_unknown', code);
    await delivery.mark?.(false);
    if (action === 'stop') {
      sources.splice(current, 1);
      log.warn('refused: events are kept', code);
    } else if (!again && !(action === 'shrink' && delivery.shrink?.())) await delivery.drop('refused', code);
  };

  const send = async (delivery: Delivery): Promise<void> => {
    await delivery.mark?.(true);
    // Consent may have been withdrawn meanwhile.
    if (left) return;
    const began = Date.now();
    let answer = await attempt(delivery);
    if (left) return;
    const blocked = !answer.status && !answered && Date.now() - began < atOnce && navigator.onLine;
    failedAtOnce = blocked ? failedAtOnce + 1 : 0;
    if (failedAtOnce >= blockedAfter) {
      sources.length = 0;
      log.warn('blocked: events are kept');
    }
    if (answer.status >= 200 && answer.status < 300) {
      if (await delivery.settle(answer.body)) return pause.end();
      answer = { status: 0 };
    }
    await act(delivery, judge(answer, Date.now()));
  };

  const next = async (): Promise<Delivery | undefined> => {
    for (current = 0; current < sources.length; current++) {
      const delivery = await sources[current]?.next();
      if (delivery) return delivery;
    }
    return undefined;
  };

  const drain = async (renew: () => number): Promise<void> => {
    while (!left && allowed() && navigator.onLine) {
      const ms = pause.left() || renew();
      if (ms > 0) return later(ms);
      const delivery = await next();
      if (!delivery) return;
      await send(delivery);
    }
  };

  const begin = (): Promise<void> => {
    left = false;
    return lock(drain);
  };

  return {
    flush() {
      if (!allowed()) return flushing;
      return (flushing = flushing.then(begin).catch((error: unknown) => log.warn('sending failed', error)));
    },
    healthy: () => !pause.failures() && !pause.left(),
    leave() {
      left = true;
    },
    abort() {
      left = true;
      underWay?.abort();
    },
  };
}
