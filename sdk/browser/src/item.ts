import { newID } from './id.js';
import { toJSON } from './json.js';
import type { Settings } from './options.js';
import type { Row } from './store.js';
import { version } from './version.js';
import type { Visitor } from './visitor.js';

/** When a fact happened and its id, where that was before track was called. */
export interface Fact {
  /** A UUID. Default: a new one. */
  eventId?: string | undefined;
  /** Milliseconds since 1970; a fraction is cut off. Default, and in place of what is no time: now. */
  ts?: number | undefined;
}

/** Makes rows of what the page says. Undefined if it can never be sent; why is logged. */
export interface Items {
  event(name: string, properties: unknown, fact?: Fact): Row | undefined;
  /** Undefined, too, if the same was already said in this session. */
  identify(userId: string, traits: unknown, fact?: Fact): Row | undefined;
}

export function createItems(settings: Settings, visitor: Visitor): Items {
  const { log } = settings;
  let made = 0;

  const row = (id: string, ts: number, item: Record<string, unknown>): Row | undefined => {
    const body = toJSON({ ...item, ts });
    if (body === undefined) {
      log.warn('not JSON: not sent', item['event']);
      return undefined;
    }
    // Times of this century have nine digits in base 32; the counter keeps the order within a millisecond.
    const key = [ts, made++].map((n) => n.toString(32).padStart(9, '0')).join('') + newID();
    // A time that is yet to come does not make the row younger than it is.
    return { key, id, ts: Math.min(ts, Date.now()), body, size: new TextEncoder().encode(body).length };
  };

  return {
    event(name, properties, fact) {
      const ts = timeOf(fact);
      const id = fact?.eventId || newID();
      return row(id, ts, {
        event_id: id,
        event: name,
        anon_id: visitor.anonId(),
        user_id: visitor.userId() || undefined,
        session_id: visitor.sessionId(true),
        properties,
        context: { ...pageContext(), ...computed(settings) },
      });
    },
    identify(userId, traits, fact) {
      const id = typeof userId === 'object' ? '' : String(userId ?? '');
      if (!id || id.length > 200) {
        log.warn('identify needs an id');
        return undefined;
      }
      visitor.identify(id);
      const ts = timeOf(fact);
      const said = { anon_id: visitor.anonId(), user_id: id, traits, session_id: visitor.sessionId(true) };
      const fingerprint = hash(toJSON(said) ?? '');
      if (visitor.said() === fingerprint) return undefined;
      const made = row('', ts, said);
      if (made) visitor.say(fingerprint);
      return made;
    },
  };
}

/** Whole milliseconds, as the server takes them. */
function timeOf(fact: Fact | undefined): number {
  return +new Date(fact?.ts as number) || Date.now();
}

/** Where the event happened. Query and fragment are left out: they hold what is not meant for others. */
function pageContext(): Record<string, unknown> {
  return {
    library: { name: 'actionpulse-browser', version },
    url: location.origin + location.pathname,
    referrer: document.referrer.replace(/[?#].*/, '') || undefined,
  };
}

function computed({ context, log }: Settings): Record<string, unknown> {
  try {
    return { ...(typeof context === 'function' ? context() : context) };
  } catch (error) {
    log.warn('context failed', error);
    return {};
  }
}

/** FNV-1a of 32 bits: enough to tell what was said last from what is said now. */
function hash(text: string): string {
  return String([...text].reduce((h, letter) => Math.imul(h ^ letter.charCodeAt(0), 0x01000193), 0x811c9dc5));
}
