/** Small values that outlive the page and that all tabs of the origin see. */
export interface Keep {
  /** Returns '' if there is none. */
  get(name: string): string;
  /** Keeps a value; '' removes it. */
  set(name: string, value: string): void;
}

type Values = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const year = 365 * 24 * 3600;

/** Values in memory: gone with the page. */
export function memoryKeep(): Keep {
  const values: Record<string, string> = {};
  return {
    get: (name) => values[name] ?? '',
    set: (name, value) => (values[name] = value),
  };
}

/**
 * Values in localStorage, else in cookies, else in memory. Never throws: a value
 * that cannot be stored any more is kept in memory.
 */
export function openKeep(prefix: string): Keep {
  const memory = memoryKeep();
  const values = webStorage() ?? cookies;
  const read = (name: string): string => {
    try {
      return values.getItem(prefix + name) ?? '';
    } catch {
      return '';
    }
  };
  return {
    get: (name) => memory.get(name) || read(name),
    set(name, value) {
      try {
        if (value) values.setItem(prefix + name, value);
        else values.removeItem(prefix + name);
      } catch {
        // What could not be stored is noticed now.
      }
      memory.set(name, read(name) === value ? '' : value);
    },
  };
}

/** Returns localStorage if it can be written, or could be: that it is full now makes nothing in it unsaid. */
export function webStorage(): Storage | undefined {
  try {
    if (!localStorage.length) {
      localStorage.setItem('actionpulse', '1');
      localStorage.removeItem('actionpulse');
    }
    return localStorage;
  } catch {
    return undefined;
  }
}

const cookies: Values = {
  getItem(name) {
    const start = encodeURIComponent(name) + '=';
    const found = document.cookie.split('; ').find((cookie) => cookie.startsWith(start));
    return found ? decodeURIComponent(found.slice(start.length)) : null;
  },
  setItem: (name, value) => writeCookie(name, value, year),
  removeItem: (name) => writeCookie(name, '', 0),
};

function writeCookie(name: string, value: string, age: number): void {
  document.cookie = `${encodeURIComponent(name)}=${encodeURIComponent(value)};path=/;max-age=${age};SameSite=Lax`;
}
