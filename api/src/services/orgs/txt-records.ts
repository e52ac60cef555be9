// TXT records from the system's resolver, within a bounded time.
import { Resolver } from 'node:dns/promises';
import type { FindTxtRecords } from '../context/dns-port.ts';

/** Timeout of one attempt at one server. */
const ATTEMPT_MS = 2_000;
const ATTEMPTS = 2;
const DEADLINE_MS = 5_000;
/** A name has no more records of interest. */
const MAX_RECORDS = 100;

export const findTxtRecords: FindTxtRecords = async (name) => {
  const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS });
  const deadline = setTimeout(() => resolver.cancel(), DEADLINE_MS);
  try {
    const records = await resolver.resolveTxt(name);
    return records.slice(0, MAX_RECORDS).map((parts) => parts.join(''));
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === 'ENOTFOUND' || code === 'ENODATA') return [];
    throw error;
  } finally {
    clearTimeout(deadline);
  }
};
