import { sendBeacon } from './beacon.js';
import { currentConsent } from './consent.js';
import { createIntake } from './intake.js';
import { createItems, type Fact } from './item.js';
import { memoryKeep, openKeep } from './keep.js';
import { createLock } from './lock.js';
import { type Consent, type GaveUp, type Options, type Settings, withDefaults } from './options.js';
import { createOutbox } from './outbox.js';
import { createPause } from './pause.js';
import { createSender, type Source } from './sender.js';
import { openStore, type Row, storageStore } from './store.js';
import { createVisitor, moveVisitor } from './visitor.js';

/** Sends the events of a page. No method throws or rejects, whatever the network does. */
export interface Client {
  /**
   * Records an event. Its id, time, visitor and session are fixed now and do
   * not change, however often it is sent. Returns the id; '' if nothing was
   * recorded, since consent is denied or the event can never be sent.
   */
  track(event: string, properties?: Record<string, unknown>, fact?: Fact): string;
  /**
   * Says who the visitor is: later events carry the user. The server links the
   * browser to the user, sets traits and adds one event `identify` each time it
   * is called. So the same user and traits are sent once a session, and never
   * again by themselves when their outcome is unknown: the next call sends them.
   */
  identify(userId: string, traits?: Record<string, unknown>, fact?: Pick<Fact, 'ts'>): void;
  /** Forgets the visitor, as at a logout. What waits is still sent as it was recorded. */
  reset(): void;
  /** Sends what waits now, unless a pause is to be kept. Resolves when that is done. */
  flush(): Promise<void>;
  /** Remembers the visitor's choice. `denied` removes the outbox and all ids. */
  setConsent(consent: 'granted' | 'denied'): void;
  /** The same as `setConsent('denied')`. */
  optOut(): void;
  /** The same as `setConsent('granted')`. */
  optIn(): void;
  consent(): Consent;
  anonId(): string;
  /** The user; '' before identify. */
  userId(): string;
  sessionId(): string;
  /** For extensions, such as session replay. */
  readonly extension: Extension;
}

/** What an extension may use of a client. */
export interface Extension {
  readonly settings: Settings;
  /** Adds a source; it is asked after those that were there before. */
  addSource(source: Source): void;
  /** Calls back when the consent has changed, in this tab or another. */
  onConsent(callback: (consent: Consent) => void): void;
  /** The session; with `touch` it goes on. Undefined unless consent is granted. */
  session(touch: boolean): string | undefined;
  /** Ends the session: the next one has another id. */
  endSession(): void;
}

/** The size of the largest item that the server takes. */
const maxItem = 64 << 10;

/** Without consent so many events are kept in memory. */
const maxHeld = 1_000;

/** Makes a client. Where there is no page, as on a server that renders it, it does nothing. */
export function createClient(options: Options): Client {
  const settings = withDefaults(options);
  const { log, onGaveUp } = settings;
  const usable = isUsable(settings);
  const prefix = `actionpulse:${settings.name}:`;
  const temporary = memoryKeep();
  const keep = usable ? openKeep(prefix) : temporary;
  const consent = (): Consent => (usable ? currentConsent(settings, keep) : 'denied');
  const granted = (): boolean => consent() === 'granted';
  const visitor = createVisitor(() => (granted() ? keep : temporary));
  const items = createItems(settings, visitor);
  const storage = usable ? storageStore(`${prefix}row:`) : undefined;
  const outbox = createOutbox({ open: () => openStore(prefix, storage), storage, settings, gaveUp });
  const intake = createIntake({ settings, outbox, gaveUp });
  const sources = [intake];
  const pause = createPause(keep);
  const lock = createLock(prefix, keep);
  const sender = createSender({ settings, sources, lock, pause, allowed: granted, later });
  const listeners: ((consent: Consent) => void)[] = [];
  /** Rows that wait for consent. */
  let held: Row[] = [];
  /** Rows that were sent as beacons: once is enough. */
  const beaconed = new WeakSet<Row>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let due = Infinity;

  function gaveUp(reason: GaveUp['reason'], rows: Row[], code?: string): void {
    const ids = rows.map((row) => row.id || 'identify');
    const what = { reason, ids, ...(code && { code }) };
    log.warn('given up', what);
    if (ids.includes('identify')) visitor.say('');
    onGaveUp(what);
  }

  function later(ms: number): void {
    const at = Date.now() + ms;
    if (at >= due) return;
    clearTimeout(timer);
    due = at;
    // A wait longer than a timer can be is begun again when that ends.
    timer = setTimeout(() => void flush(), Math.min(ms, 0x7fffffff));
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    due = Infinity;
    return sender.flush();
  }

  function add(row: Row | undefined): string {
    if (!row) return '';
    if (row.size > maxItem) {
      gaveUp('refused', [row], 'event_too_large');
      return '';
    }
    if (granted()) {
      outbox.add(row);
      later(!row.id || outbox.own().length >= settings.flushAt ? 0 : settings.flushInterval);
    } else if (held.push(row) > maxHeld) {
      gaveUp('overflow', held.splice(0, 1));
    }
    return row.id;
  }

  /** Does what follows from a choice, wherever it was made. */
  function obey(chosen: Consent): void {
    const rows = held;
    held = [];
    if (chosen === 'granted') {
      moveVisitor(temporary, keep);
      rows.forEach(add);
    } else if (chosen === 'denied') {
      sender.abort();
      void outbox.clear();
    }
    listeners.forEach((listener) => listener(chosen));
  }

  function setConsent(chosen: 'granted' | 'denied'): void {
    if (!usable) return;
    if (chosen === 'denied') {
      visitor.forget();
      pause.end();
    }
    keep.set('consent', chosen);
    obey(chosen);
  }

  function hide(): void {
    if (!granted()) return;
    outbox.rescue();
    if (sources[0] !== intake || !sender.healthy() || !navigator.onLine) return;
    const rows = outbox.own().filter((row) => row.id && !beaconed.has(row));
    const url = `${settings.url}/v1/track?key=${encodeURIComponent(settings.key)}`;
    sendBeacon(url, rows).forEach((row) => beaconed.add(row));
  }

  function listen(): void {
    addEventListener('pagehide', () => {
      hide();
      // Requests fail now because the page ends. Should it come back from a cache, it goes on.
      sender.leave();
      later(settings.flushInterval);
    });
    addEventListener('online', () => {
      pause.wake();
      void flush();
    });
    addEventListener('storage', (event) => event.key === `${prefix}consent` && obey(consent()));
    document.addEventListener('visibilitychange', () => document.hidden && hide());
  }

  if (usable) {
    listen();
    pause.wake();
    // What earlier pages have left behind. One that ended while a visitor opted out may not have removed it.
    obey(keep.get('consent') as Consent);
    later(0);
  }

  return {
    track: (event, properties, fact) => (consent() === 'denied' ? '' : add(items.event(event, properties, fact))),
    identify(userId, traits, fact) {
      if (consent() !== 'denied') add(items.identify(userId, traits, fact));
    },
    reset: () => visitor.forget(),
    flush,
    setConsent,
    optOut: () => setConsent('denied'),
    optIn: () => setConsent('granted'),
    consent,
    anonId: () => visitor.anonId(),
    userId: () => visitor.userId(),
    sessionId: () => visitor.sessionId(false),
    extension: {
      settings,
      addSource(source) {
        sources.push(source);
        later(0);
      },
      onConsent: (callback) => void listeners.push(callback),
      session: (touch) => (granted() ? visitor.sessionId(touch) : undefined),
      endSession: () => visitor.endSession(),
    },
  };
}

function isUsable({ url, key, log }: Settings): boolean {
  if (typeof document === 'undefined') return false;
  // Other keys are secrets. And an event is known by its id and the kind of key, so that never changes.
  const usable = /^https?:/.test(url) && /^apb_/.test(key);
  if (!usable) log.warn('nothing is sent: wrong url or key');
  return usable;
}
