/**
 * Returns the JSON of a value, or undefined if it has none (a cycle, a BigInt,
 * a function). Half a surrogate pair, as cutting a text inside an emoji leaves
 * it, becomes U+FFFD: it is not Unicode, and a body with one is refused whole.
 */
export function toJSON(value: unknown): string | undefined {
  try {
    // A pair is written as it is, so an escape \ud… is always a lone half. The
    // second branch steps over every other escape, "\\" included.
    return (JSON.stringify(value) as string | undefined)?.replace(/\\(ud[89a-f]..|[^])/g, (all, half: string) =>
      half[1] ? '\\ufffd' : all,
    );
  } catch {
    return undefined;
  }
}

/** Returns the value of a JSON text, or undefined if it is none. */
export function fromJSON(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}

/** Reports whether a value is an object with members. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a member of a value; undefined if it has none. */
export function member(value: unknown, name: string): unknown {
  return (value as Record<string, unknown> | null | undefined)?.[name];
}
