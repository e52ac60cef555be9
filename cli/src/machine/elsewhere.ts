// The commands of the machine in the package, which has not got what runs them: listed as in a
// checkout, each says where it runs.
import type { Chapter } from '../program/command-spec.ts';
import { loadedEntries, SERVICE_HEADING, serviceEntries, type MachineCommand, type MachineGroup } from './spec.ts';

export const elsewhereChapter: Chapter = {
  heading: SERVICE_HEADING,
  entries: loadedEntries(serviceEntries.map(takingAnything), (words) => async () => {
    const { refuseElsewhere } = await import('./refuse-elsewhere.ts');
    return refuseElsewhere(words);
  }),
};

/** Whatever is typed behind it, the answer is the same. */
function takingAnything(entry: MachineCommand | MachineGroup): MachineCommand | MachineGroup {
  if ('commands' in entry) return { ...entry, commands: entry.commands.map(open) };
  return open(entry);
}

function open(command: MachineCommand): MachineCommand {
  return {
    ...command,
    arguments: [{ name: '[arguments...]', about: 'for the command' }],
    options: [],
    passThrough: 'unknown',
  };
}
