// The session and the API client of this page.
import { Berth } from '@berth/sdk';
import { connection } from './connection.ts';
import { Session } from './session.ts';

const KEY = 'berth.person';

/** Removes what the tab keeps for another person, such as drafts of messages. */
function keepOnlyFor(userId: string): void {
  try {
    if (sessionStorage.getItem(KEY) === userId) return;
    sessionStorage.clear();
    sessionStorage.setItem(KEY, userId);
  } catch {
    // The browser blocks storage: there is nothing.
  }
}

export const session = new Session(connection.fetch, (userId, isOther) => {
  keepOnlyFor(userId);
  if (isOther) location.replace('/console');
});
export const forgetPerson = (): void => keepOnlyFor('');
export const berth = new Berth({ apiKey: session.token, url: location.origin, fetch: session.fetch });
