// Time zone of the times on all pages. Billing is by days in UTC, always.
import { Observed } from './observed.ts';

export type Zone = 'utc' | 'local';

export const zone = new Observed<Zone>('utc');

/** Name of the chosen zone, such as `Europe/Berlin`. */
export const zoneName = (): string =>
  zone.get() === 'utc' ? 'UTC' : new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Formats times in the zone that is chosen when it is called. */
export function inZone(locale: string, options: Intl.DateTimeFormatOptions): (at: Date | number) => string {
  const formats = {
    utc: new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' }),
    local: new Intl.DateTimeFormat(locale, options),
  };
  return (at) => formats[zone.get()].format(at);
}
