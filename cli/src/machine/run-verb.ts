// Runs a verb of machine/ as an action, with the operator's configuration and progress on stderr.
import { readConfig, type Flags } from '@berth/machine/config/config.ts';
import { Progress } from '@berth/machine/output/progress.ts';
import type { VerbContext } from '@berth/machine/verbs/context.ts';
import type { Action, Input } from '../program/command-spec.ts';

/** Options of the host commands. */
export interface MachineFlags extends Flags {
  name?: string;
  org?: string;
  plan?: string;
  profile?: boolean;
  tier?: string | undefined;
  whole?: boolean;
  force?: boolean;
  sleep?: boolean;
  systemd?: boolean;
  start?: boolean;
}

export type Verb = (context: VerbContext, flags: MachineFlags, args: readonly string[]) => Promise<number>;

export function machineVerb(verb: Verb): Action<MachineFlags> {
  return async ({ environment, out, signal, stderr }, { args, options }: Input<MachineFlags>) => {
    const config = readConfig(options, environment);
    return await verb(
      { config, progress: new Progress(stderr), environment, signal, print: (line) => out.line(line) },
      options,
      args,
    );
  };
}
