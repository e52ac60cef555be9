// `berth completion`: the script of a shell, as it is.
import type { SHELLS } from '../completion/complete.ts';
import { SCRIPTS } from '../completion/scripts.ts';
import type { CliContext } from '../context.ts';
import type { Input } from '../spec.ts';

export async function completion({ out }: CliContext, { args: [shell] }: Input): Promise<void> {
  await out.bytes(SCRIPTS[shell as (typeof SHELLS)[number]]);
}
