// Parts of the console that are gone because the service was updated.
import { Observed } from '../rules/page/observed.ts';
import { connection } from './connection.ts';
import { holdsInput } from './input.ts';

const KEY = 'berth.reloaded';

/** Failure of the last import that was not followed by a reload; null: none. */
export const missingPart = new Observed<Error | null>(null);

/**
 * Reloads the page when a part of it is gone: once for each build, and not while the service fails
 * or the page holds input. Else the failure is kept.
 * @param build identifies the build of this page
 */
export function watchParts(build: string): void {
  let reloads = false;
  addEventListener('vite:preloadError', (event) => {
    if (!reloads && (connection.isInterrupted || holdsInput() || !isFirstReload(build))) {
      missingPart.set(event.payload);
      return;
    }
    // Without an error: the import results in undefined.
    event.preventDefault();
    if (!reloads) location.reload();
    reloads = true;
  });
}

/** A rollback, or replicas of two builds, lead back to a build: none is reloaded twice. */
function isFirstReload(build: string): boolean {
  try {
    const builds = JSON.parse(sessionStorage.getItem(KEY) ?? '[]') as string[];
    if (builds.includes(build)) return false;
    sessionStorage.setItem(KEY, JSON.stringify([...builds, build]));
    return true;
  } catch {
    return false;
  }
}
