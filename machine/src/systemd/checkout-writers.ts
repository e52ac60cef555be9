// Users other than root who can change a program that root runs at each start of the computer.
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const OTHERS_WRITE = 0o022;

/** The first place on the path that others than root can change, as a clause; null if none. */
export async function foreignWriter(path: string): Promise<string | null> {
  for (let place = path; ; place = dirname(place)) {
    const { uid, mode } = await stat(place);
    if (uid !== 0) return `${place} belongs to the user ${uid}`;
    // Entries of a folder with the sticky bit belong to their owners.
    if ((mode & OTHERS_WRITE) !== 0 && (mode & 0o1000) === 0) return `${place} is writable by others than root`;
    if (place === dirname(place)) return null;
  }
}
