// `berth chaos`: runs e2e/chaos/main.ts on a prepared host.
import { join } from 'node:path';
import { CHECKOUT } from '../config/folders.ts';
import { setUp } from '../setup/setup.ts';
import { runNode } from './bench.ts';
import type { VerbContext } from './context.ts';

/** Passes the arguments on and returns the run's exit code. */
export async function chaos(context: VerbContext, args: readonly string[]): Promise<number> {
  const ready = await setUp(context, { forTests: true });
  return runNode([join(CHECKOUT, 'e2e/chaos/main.ts'), ...args], context, ready);
}
