// `berth keys create`: mints an operator's API key locally, also while the service is stopped.
import { createKey } from '../roles/control-plane/api-command.ts';
import type { VerbContext } from './context.ts';
import { withApiOnMachine } from './on-machine.ts';

/** Prints only the key on stdout. */
export async function createKeyOnMachine(context: VerbContext, name: string): Promise<number> {
  return await withApiOnMachine(context, async (options) => {
    const key = await createKey(options, name);
    context.progress.say(`API key ${key.keyId} (shown once):`);
    context.print(key.token);
    return 0;
  });
}
