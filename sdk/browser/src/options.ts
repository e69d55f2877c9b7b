/** What may be done with a visitor: `pending` keeps events in memory until they have chosen. */
export type Consent = 'granted' | 'pending' | 'denied';

/** Takes what the client has to say. `detail` holds ids, codes and counts, never a key. */
export interface Logger {
  debug(message: string, detail?: unknown): void;
  warn(message: string, detail?: unknown): void;
}

/** An item that the server refused. It is not sent again. */
export interface Rejection {
  /** The item's place in its request, from 0. */
  index: number;
  eventId: string;
  /** A rejection code of intake, such as `invalid_properties`. */
  code: string;
  message: string;
}

/**
 * Why records were given up: older than 47 hours; the buffer was full; the
 * server refused the request as it was (`code` says how); or an identify whose
 * outcome is unknown, which is not repeated because it could add a second event.
 */
export type GaveUpReason = 'too_old' | 'overflow' | 'refused' | 'outcome_unknown';

/** Records that will not be sent any more. */
export interface GaveUp {
  reason: GaveUpReason;
  /** The code of the server's answer, if it was the reason. */
  code?: string;
  /** The ids of the events, or chunks as `session/number`. */
  ids: string[];
}

/** Further members of every event's `context`. */
export type Context = Record<string, unknown>;

/** What a client is made from. Only `url` and `key` are required. */
export interface Options {
  /** The server's address, such as `https://events.example.com`. */
  url: string;
  /** A browser token, `apb_…`. Any other kind of key is a secret and is refused. */
  key: string;
  /** Names outbox and ids. Two projects on one origin need two names. Default `default`. */
  name?: string;
  /** What holds until the visitor has chosen. Default `granted`. */
  consent?: Consent;
  /** Treats Do-Not-Track and Global Privacy Control as `denied` until the visitor has chosen. Default false. */
  honorPrivacySignals?: boolean;
  /** Added to every event's context, or computes what is added. */
  context?: Context | (() => Context);
  /** Milliseconds that an event waits for others. Default 5,000. */
  flushInterval?: number;
  /** Sends at once when so many events wait. Default 20. */
  flushAt?: number;
  /** The most events in a request. Default 250, at most 1,000. */
  maxBatchEvents?: number;
  /** The most bytes in a request. Default 256 KiB; the server takes 1 MiB. */
  maxBatchBytes?: number;
  /** The most events kept; the oldest are given up. Default 5,000. */
  maxBufferEvents?: number;
  /** The most bytes kept. Default 4 MiB; without IndexedDB at most 1 MiB. */
  maxBufferBytes?: number;
  /** Attempts in a row before a long rest. Default 10. */
  maxAttempts?: number;
  /** Milliseconds of that rest. Default 300,000. */
  restInterval?: number;
  /** Milliseconds until an attempt counts as unanswered. Default 30,000. */
  requestTimeout?: number;
  /** Called for every item that was refused. */
  onRejected?: (rejection: Rejection) => void;
  /** Called when records are given up. */
  onGaveUp?: (gaveUp: GaveUp) => void;
  /** Default: `console.warn`, and `console.debug` with `debug`. */
  logger?: Logger;
  /** Has the default logger say what is sent. Default false. */
  debug?: boolean;
}

/** Options with every default filled in and every bound kept. */
export type Settings = Required<Omit<Options, 'onRejected' | 'onGaveUp' | 'logger' | 'debug' | 'consent'>> & {
  consent: Consent;
  log: Logger;
  onRejected: (rejection: Rejection) => void;
  onGaveUp: (gaveUp: GaveUp) => void;
};

const maxItems = 1000;

/**
 * Fills in the defaults, for options that are there but undefined, too.
 * Callbacks and the logger are called after the work at hand: what they throw
 * is the page's to see, and does not come back here.
 */
export function withDefaults(given: Options): Settings {
  const options = { ...given };
  const values = options as Record<string, unknown>;
  for (const name in values) values[name] ?? delete values[name];
  const logger = options.logger ?? consoleLogger(options.debug);
  const apart =
    <N extends string>(object: { [name in N]?: unknown }, name: N) =>
    (...said: unknown[]): void =>
      void Promise.resolve().then(() => (object[name] as ((...said: unknown[]) => void) | undefined)?.(...said));
  return {
    name: 'default',
    consent: 'granted',
    honorPrivacySignals: false,
    context: {},
    flushInterval: 5_000,
    flushAt: 20,
    maxBatchBytes: 256 << 10,
    maxBufferEvents: 5_000,
    maxBufferBytes: 4 << 20,
    maxAttempts: 10,
    restInterval: 300_000,
    requestTimeout: 30_000,
    ...options,
    maxBatchEvents: Math.min(options.maxBatchEvents ?? 250, maxItems),
    url: `${options.url}`.replace(/\/+$/, ''),
    log: { debug: apart(logger, 'debug'), warn: apart(logger, 'warn') },
    onRejected: apart(options, 'onRejected'),
    onGaveUp: apart(options, 'onGaveUp'),
  };
}

function consoleLogger(debug: boolean | undefined): Logger {
  return {
    debug: (...said) => debug && console.debug('[actionpulse]', ...said),
    warn: (...said) => console.warn('[actionpulse]', ...said),
  };
}
