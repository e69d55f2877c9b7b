import { newID } from './id.js';
import type { Keep } from './keep.js';

/** Who the page's visitor is: a browser, perhaps a user, and a session. */
export interface Visitor {
  anonId(): string;
  /** The user; '' before identify. */
  userId(): string;
  identify(userId: string): void;
  /** The session; `touch` counts as activity. */
  sessionId(touch: boolean): string;
  /** Ends the session: the next one is new. */
  endSession(): void;
  /** What was last said by identify, as a fingerprint; '' if it is unknown whether the server has heard it. */
  said(): string;
  say(fingerprint: string): void;
  /** Forgets browser, user and session. */
  forget(): void;
}

/** A session ends after so many milliseconds without activity. */
export const sessionTimeout = 30 * 60_000;

const names = ['anon', 'user', 'session', 'said'];

/** The visitor whose ids are in what keep returns. Ids are made when they are first asked for. */
export function createVisitor(keep: () => Keep): Visitor {
  return {
    anonId() {
      const id = keep().get('anon') || newID();
      keep().set('anon', id);
      return id;
    },
    userId: () => keep().get('user'),
    identify: (userId) => keep().set('user', userId),
    sessionId(touch) {
      const now = Date.now();
      const [known, last] = keep().get('session').split(' ');
      const id = known && Math.abs(now - +(last ?? 0)) < sessionTimeout ? known : newID();
      if (touch || id !== known) keep().set('session', `${id} ${now}`);
      return id;
    },
    endSession: () => keep().set('session', ''),
    said: () => keep().get('said'),
    say: (fingerprint) => keep().set('said', fingerprint),
    forget: () => names.forEach((name) => keep().set(name, '')),
  };
}

/** Moves a visitor to another keep, unless that has one. */
export function moveVisitor(from: Keep, to: Keep): void {
  const known = to.get('anon');
  names.forEach((name) => {
    if (!known) to.set(name, from.get(name));
    from.set(name, '');
  });
}
