// `berth completion`: prints a completion script.
import type { SHELLS } from './complete.ts';
import { SCRIPTS } from './scripts.ts';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';

export async function completion({ out }: CliContext, { args: [shell] }: Input): Promise<void> {
  await out.bytes(SCRIPTS[shell as (typeof SHELLS)[number]]);
}
