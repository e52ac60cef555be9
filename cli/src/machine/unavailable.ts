// Host commands in the npm package: listed, but each only reports that it needs a checkout.
import type { Chapter } from '../program/command-spec.ts';
import { loadedEntries, SERVICE_HEADING, serviceEntries, type MachineCommand, type MachineGroup } from './spec.ts';

export const unavailableChapter: Chapter = {
  heading: SERVICE_HEADING,
  entries: loadedEntries(serviceEntries.map(withoutValidation), (words) => async () => {
    const { refuseElsewhere } = await import('./refuse-unavailable.ts');
    return refuseElsewhere(words);
  }),
};

/** Accepts any arguments: the response is always the same. */
function withoutValidation(entry: MachineCommand | MachineGroup): MachineCommand | MachineGroup {
  if ('commands' in entry) return { ...entry, commands: entry.commands.map(open) };
  return open(entry);
}

function open(command: MachineCommand): MachineCommand {
  return {
    ...command,
    arguments: [{ name: '[arguments...]', about: 'arguments of the command' }],
    options: [],
    passThrough: 'unknown',
  };
}
