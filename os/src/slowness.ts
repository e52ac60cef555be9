// Speed of this computer, by work like that of a daemon: functions that are compiled anew, text,
// hashes, system calls.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Script } from 'node:vm';

/** Time of the work on the computers for which Berth's deadlines were chosen, in milliseconds. */
const REFERENCE_MS = 60;
const ROUNDS = 5;

/** How many times slower than the reference this computer is; at least 1. Uses the best round. */
export function slowness(): number {
  const rounds = Array.from({ length: ROUNDS }, roundMs);
  return Math.max(1, Math.min(...rounds) / REFERENCE_MS);
}

function roundMs(): number {
  const startedAt = performance.now();
  let text = '';
  for (let n = 0; n < 20; n += 1) {
    const script = new Script(`Array.from({ length: 500 }, (_, at) => ({ at, name: 'row ' + at * ${n} }))`);
    for (let m = 0; m < 20; m += 1) text = JSON.stringify(script.runInThisContext() as object);
    createHash('sha256').update(text.repeat(20)).digest();
  }
  for (let n = 0; n < 2_000; n += 1) readFileSync('/proc/self/stat');
  return performance.now() - startedAt;
}
