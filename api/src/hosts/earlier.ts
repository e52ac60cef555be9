// Calls that guest daemons of earlier releases lack.
import { HostError } from './error.ts';

/** Makes a call, or the call that it replaces if the guest daemon is of an earlier release. */
export async function orEarlier<T, E>(make: () => Promise<T>, makeEarlier: () => Promise<E>): Promise<T | E> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== 'file_call_unsupported') throw error;
    return await makeEarlier();
  }
}
