// The person's choice of a time zone, in all tabs.
import { zone, type Zone } from '../rules/page/zone.ts';
import { readStored, store } from '../session/stored.ts';

const KEY = 'berth.zone';

export function setZone(chosen: Zone): void {
  store(KEY, chosen);
  zone.set(chosen);
}

export function watchZone(): void {
  const read = (): void => zone.set(readStored(KEY) === 'local' ? 'local' : 'utc');
  read();
  addEventListener('storage', read);
}
