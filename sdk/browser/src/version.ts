/** The version of this package, as events carry it in `context.library`. */
export const version = '0.1.0';
