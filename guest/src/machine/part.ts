// Names the failed part of a change.
import { messageOf } from '@berth/os/errors.ts';

/** Runs one part; rejects with a message that begins with its name. */
export async function part<T>(name: string, apply: () => T | Promise<T>): Promise<T> {
  try {
    return await apply();
  } catch (error) {
    throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
  }
}
