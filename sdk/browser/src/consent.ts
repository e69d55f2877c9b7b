import type { Keep } from './keep.js';
import type { Consent, Settings } from './options.js';

/** Returns what holds now: the visitor's choice in keep, else what the browser's signals and the options say. */
export function currentConsent(settings: Settings, keep: Keep): Consent {
  const chosen = keep.get('consent') as Consent | '';
  const { doNotTrack, globalPrivacyControl } = navigator as Navigator & { globalPrivacyControl?: boolean };
  const signalled = doNotTrack === '1' || globalPrivacyControl === true;
  return chosen || (settings.honorPrivacySignals && signalled ? 'denied' : settings.consent);
}
