/**
 * Returns a new random UUID (version 4). `crypto.randomUUID` exists in secure
 * contexts only; elsewhere each digit is made from random bits.
 */
export function newID(): string {
  return crypto.randomUUID?.() ?? '10000000-1000-4000-8000-100000000000'.replace(/[018]/g, randomDigit);
}

/** Four random bits for 0 and 1, two of them for the 8, which marks the variant. */
function randomDigit(digit: string): string {
  const random = crypto.getRandomValues(new Uint8Array(1))[0] as number;
  return (+digit ^ (random & (15 >> (+digit / 4)))).toString(16);
}
